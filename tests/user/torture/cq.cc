/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "cq.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "channel.h"
#include "group.h"

namespace torture {

/* Room for all that can be in it. */
constexpr int kNeeded = Group::kPairs * 4 * (Queue::kDepth + 1);

/* ------------------------------------------------------------------- life -- */

void CompletionQueue::create(CqKind kind, Channel *channel, std::string name, Random &random)
{
	ibv_comp_channel *ch = channel ? channel->get() : nullptr;
	const int vector = static_cast<int>(random.below(device.ctx->num_comp_vectors));
	ibv_cq_init_attr_ex attr{};

	name_ = std::move(name);
	kind_ = kind;
	life_++;
	lives_.push_back({this, life_, nullptr});
	attr.cqe = kNeeded;
	attr.cq_context = &lives_.back();
	attr.channel = ch;
	attr.comp_vector = static_cast<uint32_t>(vector);
	attr.wc_flags = IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM;
	ex_ = random.one_in(2) ? must(ibv_create_cq_ex(device.ctx, &attr), "ibv_create_cq_ex") : nullptr;
	cq_ = ex_ ? ibv_cq_ex_to_cq(ex_)
		  : must(ibv_create_cq(device.ctx, kNeeded, &lives_.back(), ch, vector), "ibv_create_cq");
	lives_.back().cq = cq_;
	events_ = arms_ = owed_ = 0;
	armed_ = kUnarmed;
	sure_ = mergeable_ = closing_ = false;
	calls_ = polled_ = armed_at_ = 0;
	seen_ = ticks_ = 0;
	totals.cqs++;
	if (!channel)
		return;
	std::lock_guard guard(lock_);
	arm_until_dry(kind_ == CqKind::solicited);
}

void CompletionQueue::destroy()
{
	{
		std::lock_guard guard(lock_);

		closing_ = true;
		ibv_ack_cq_events(cq_, unacked_);
		unacked_ = 0;
	}
	/* waits for the acks of those who have just got an event */
	must(ibv_destroy_cq(cq_), "ibv_destroy_cq");
	life_++;
	totals.arms += arms_;
	totals.calls += calls_;
	totals.events += events_;
	cq_ = nullptr;
	ex_ = nullptr;
}

/* ---------------------------------------------------------------- polling -- */

void CompletionQueue::account(const Completion &c)
{
	Queue &queue = Queue::of(c);

	if (queue.cq != this)
		fail("a completion of %s is in %s", queue.cq->name().c_str(), name_.c_str());
	const bool matching = queue.complete(c);

	polled_++;
	if (!sure_ || !armed_ || (armed_ == kArmedSolicited && !matching))
		return;
	owed_ = armed_at_ + 1;
	armed_ = kUnarmed;
}

int CompletionQueue::poll_classic(int n)
{
	std::array<ibv_wc, 16> wc;
	const int got = ibv_poll_cq(cq_, std::min<int>(n, wc.size()), wc.data());

	if (got < 0)
		fail("ibv_poll_cq: %d", got);
	for (int i = 0; i < got; i++)
		account({wc[i].wr_id, wc[i].status, wc[i].wc_flags, ntohl(wc[i].imm_data), wc[i].qp_num});
	return got;
}

int CompletionQueue::poll_extended(int n)
{
	ibv_poll_cq_attr attr{};
	int got = 0;
	int rc = ibv_start_poll(ex_, &attr);

	if (rc == ENOENT)
		return 0;
	while (!rc) {
		account({ex_->wr_id, ex_->status, ibv_wc_read_wc_flags(ex_), ntohl(ibv_wc_read_imm_data(ex_)),
			 ibv_wc_read_qp_num(ex_)});
		if (++got == n)
			break;
		rc = ibv_next_poll(ex_);
	}
	if (rc && rc != ENOENT)
		fail("ibv_start_poll, ibv_next_poll: %d", rc);
	ibv_end_poll(ex_);
	return got;
}

int CompletionQueue::poll_some(int n)
{
	extended_now_ = !extended_now_;
	return ex_ && extended_now_ ? poll_extended(n) : poll_classic(n);
}

bool CompletionQueue::poll_dry()
{
	bool any = false;

	while (poll_some(16) > 0)
		any = true;
	return any;
}

void CompletionQueue::poll(int n)
{
	std::lock_guard guard(lock_);

	poll_some(n);
}

/* ----------------------------------------------------------------- arming -- */

void CompletionQueue::note_arm(Armed kind, bool empty, uint64_t events)
{
	const bool upgrade = armed_ == kArmedSolicited && kind == kArmedNext;

	if (armed_ && mergeable_ && empty && !fuzzy_ && !upgrade) {
		arms_--;
	} else {
		armed_ = kind;
		/* an arm that replaces another may be fired by what fires that one */
		mergeable_ = empty && !fuzzy_ && !upgrade;
	}
	sure_ = empty && !fuzzy_;
	armed_at_ = events;
}

/* Arms, and looks whether that is sure. */
void CompletionQueue::arm(bool solicited)
{
	const uint64_t events = events_;

	/* an arm that is not known to be there may not be asked to stay as it is */
	if (armed_ && !sure_)
		solicited = false;
	/* before it can fire */
	arms_++;
	calls_++;
	must(ibv_req_notify_cq(cq_, solicited), "ibv_req_notify_cq");
	note_arm(solicited ? kArmedSolicited : kArmedNext, poll_some(1) == 0, events);
}

void CompletionQueue::arm_until_dry(bool solicited)
{
	do {
		poll_dry();
		arm(solicited);
	} while (!sure_ && poll_dry());
}

/* Arming costs a store: much of it, in the middle of traffic. */
void CompletionQueue::burst(Random &random)
{
	for (uint32_t n = random.below(200); n; n--) {
		arm(random.one_in(3));
		if (random.one_in(4))
			poll_some(1 + static_cast<int>(random.below(4)));
	}
}

void CompletionQueue::use(Random &random)
{
	if (!threads_poll())
		return;
	std::unique_lock guard(lock_, std::try_to_lock);

	if (!guard)
		return;
	if (kind_ == CqKind::mixed && random.one_in(8))
		burst(random);
	else if (kind_ == CqKind::mixed && random.one_in(2))
		arm(random.one_in(3));
	poll_some(1 + static_cast<int>(random.below(16)));
}

/* ----------------------------------------------------------------- events -- */

void CompletionQueue::ack_later(Random &random)
{
	if (++unacked_ <= random.below(16) && !closing_)
		return;
	ibv_ack_cq_events(cq_, unacked_);
	unacked_ = 0;
}

void CompletionQueue::on_event(const Life &life, Random &random)
{
	if (life.number != life_)
		fail("an event of a CQ that was destroyed: %s", name_.c_str());
	const uint64_t events = ++events_;

	if (events > arms_)
		fail("%s: event %lu, and no more than %lu arms", name_.c_str(), events, arms_.load());
	std::lock_guard guard(lock_);

	if (!closing_ && kind_ != CqKind::mixed)
		arm_until_dry(kind_ == CqKind::solicited);
	else if (!closing_ && random.one_in(2))
		arm(false);
	ack_later(random);
}

void CompletionQueue::set_fuzzy(bool fuzzy)
{
	std::lock_guard guard(lock_);

	fuzzy_ += fuzzy ? 1 : -1;
	sure_ = false;
	mergeable_ = false;
}

/* ----------------------------------------------------------------- others -- */

/* C10 */
void CompletionQueue::resize(Random &random)
{
	must(ibv_resize_cq(cq_, kNeeded + static_cast<int>(random.below(4 * kNeeded))), "ibv_resize_cq");
	totals.resizes++;
}

/* C9 */
void CompletionQueue::moderate(Random &random)
{
	static const struct {
		uint16_t count, period;
	} choices[] = {{0, 0}, {1, 0}, {0, 500}, {16, 1000}, {3, 200}};
	const auto &choice = choices[random.below(std::size(choices))];
	ibv_modify_cq_attr attr{};

	attr.attr_mask = IBV_CQ_ATTR_MODERATE;
	attr.moderate = {choice.count, choice.period};
	const int rc = ibv_modify_cq(cq_, &attr);

	if (rc == EOPNOTSUPP || rc == ENOSYS) {
		totals.unmoderated++;
		return;
	}
	must(rc, "ibv_modify_cq");
	totals.moderated++;
}

bool CompletionQueue::look()
{
	const uint64_t events = events_;

	if (events >= owed_ || events != seen_)
		ticks_ = 0;
	else
		ticks_++;
	seen_ = events;
	return note_wait(ticks_);
}

void CompletionQueue::show() const
{
	static const char *const kinds[] = {"loop", "solicited", "mixed", "polled"};
	static const char *const armed[] = {"not armed", "armed solicited", "armed"};

	printf("   %s (%s): %s%s%s, arm calls %lu, events %lu, no more than %lu, soon %lu; polled %lu, not acked "
	       "%u%s\n",
	       name_.c_str(), kinds[static_cast<int>(kind_)], armed[armed_], sure_ ? " surely" : "",
	       fuzzy_ ? " fuzzy" : "", calls_, events_.load(), arms_.load(), owed_.load(), polled_, unacked_,
	       closing_ ? ", closing" : "");
}

} // namespace torture
