/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "group.h"

#include <algorithm>
#include <cstdio>

namespace torture {

constexpr uint32_t kKillOneIn = 2000;
constexpr uint32_t kRecreateOneIn = 10000;
constexpr uint32_t kResizeOneIn = 40;
constexpr uint32_t kModerateOneIn = 100;

static std::vector<std::unique_ptr<Group>> groups;
static std::atomic<bool> groups_ready = false;

/* ------------------------------------------------------------------ pairs -- */

void Pair::init(Group *g)
{
	group = g;
	for (int i = 0; i < 2; i++) {
		end[i].pair = this;
		end[i].peer = &end[!i];
		end[i].sq.init(&end[i], true);
		end[i].rq.init(&end[i], false);
	}
}

void Pair::choose_cqs(Random &random)
{
	for (End &e : end) {
		e.rq.cq = &group->cqs[random.below(Group::kCqs)];
		/* a successful send wakes nobody who waits for solicited ones */
		do {
			e.sq.cq = &group->cqs[random.below(Group::kCqs)];
		} while (e.sq.cq->kind() == CqKind::solicited);
	}
}

void Pair::create_qp(End &e)
{
	ibv_qp_init_attr attr{};

	attr.qp_type = IBV_QPT_RC;
	attr.send_cq = e.sq.cq->get();
	attr.recv_cq = e.rq.cq->get();
	attr.cap.max_send_wr = Queue::kDepth + 1;
	attr.cap.max_recv_wr = Queue::kDepth + 1;
	attr.cap.max_send_sge = 1;
	attr.cap.max_recv_sge = 1;
	e.qp = must(ibv_create_qp(device.pd, &attr), "ibv_create_qp");
}

/* The queues are closed. */
void Pair::start()
{
	for (Queue *q : queues())
		q->restart();
	dying = false;
	device.connect(end[0].qp, end[1].qp);
	for (Queue *q : queues())
		q->open();
}

void Pair::create(Random &random)
{
	choose_cqs(random);
	create_qp(end[0]);
	create_qp(end[1]);
	start();
}

void Pair::close_queues()
{
	for (Queue *q : queues())
		q->close();
}

/* ---------------------------------------------------------------- killing -- */

/* CASES 10: what is posted to a QP in error is flushed last; then all that was posted before is over. */
void Pair::drain()
{
	uint64_t naps = 0;

	for (End &e : end)
		device.to_state(e.qp, IBV_QPS_ERR);
	for (Queue *q : queues())
		q->post_last();
	while (!std::ranges::all_of(queues(), &Queue::drained)) {
		group->poll_all();
		nap(100);
		if (naps++ > static_cast<uint64_t>(options.patience) * 10)
			fail("a QP in error does not drain");
	}
}

/* C14: with completions left in the CQs, and WRs that never complete. */
void Pair::purge(bool reset)
{
	for (Queue *q : queues())
		q->cq->set_fuzzy(true);
	for (End &e : end) {
		if (reset)
			device.to_state(e.qp, IBV_QPS_RESET);
		else
			must(ibv_destroy_qp(e.qp), "ibv_destroy_qp");
	}
	for (Queue *q : queues())
		q->cq->set_fuzzy(false);
	totals.purges++;
}

/* Afterwards both QPs are destroyed, or in RESET; nobody posts to them. */
void Pair::end_work(Random &random, bool reset)
{
	dying = true;
	close_queues();
	if (random.one_in(3))
		drain();
	purge(reset);
}

void Pair::destroy(Random &random)
{
	end_work(random, false);
	end[0].qp = end[1].qp = nullptr;
}

void Pair::kill(Random &random)
{
	const bool reset = random.one_in(3);

	/* often one end is in error already while others post */
	if (!gate.try_enter())
		return;
	if (random.one_in(2)) {
		dying = true;
		device.to_state(end[random.below(2)].qp, IBV_QPS_ERR);
		if (random.one_in(2))
			nap(random.below(2000));
	}
	if (!gate.close(1)) {
		/* somebody else is at it */
		gate.leave();
		return;
	}
	end_work(random, reset);
	totals.kills++; /* under load: the end destroys, too */
	if (reset)
		start();
	else
		create(random);
	gate.open();
	gate.leave();
}

void Pair::show() const
{
	for (const End &e : end) {
		printf("  QP %#x%s\n", e.qp ? e.qp->qp_num : 0, dying ? ", dying" : "");
		e.sq.show();
		e.rq.show();
	}
}

/* ----------------------------------------------------------------- groups -- */

void Group::create_cqs(Random &random)
{
	for (int i = 0; i < kCqs; i++) {
		const auto kind = static_cast<CqKind>(random.below(static_cast<uint32_t>(CqKind::kinds)));
		Channel *channel = channels_[random.below(channels_.size())].get();
		const std::string name = "CQ " + std::to_string(number_) + "." + std::to_string(i);

		/* the first one is there for send queues */
		if (!i && kind == CqKind::solicited)
			cqs[i].create(CqKind::loop, channel, name, random);
		else
			cqs[i].create(kind, kind == CqKind::polled ? nullptr : channel, name, random);
	}
}

Group::Group(int number, std::vector<std::unique_ptr<Channel>> &channels, Random &random)
	: number_(number), channels_(channels)
{
	create_cqs(random);
	for (Pair &pair : pairs) {
		pair.init(this);
		pair.create(random);
	}
}

void Group::finish(Random &random)
{
	gate_.close();
	for (Pair &pair : pairs)
		pair.destroy(random);
	for (CompletionQueue &cq : cqs)
		cq.destroy();
}

void Group::recreate(Random &random)
{
	if (!gate_.close())
		return;
	for (Pair &pair : pairs)
		pair.destroy(random);
	for (CompletionQueue &cq : cqs)
		cq.destroy();
	create_cqs(random);
	for (Pair &pair : pairs)
		pair.create(random);
	gate_.open();
}

void Group::poll_all()
{
	for (CompletionQueue &cq : cqs) {
		if (cq.threads_poll())
			cq.poll(64);
	}
}

/* ------------------------------------------------------------------ using -- */

void Group::use_pair(Random &random)
{
	Pair &pair = pairs[random.below(kPairs)];

	if (random.one_in(kKillOneIn)) {
		pair.kill(random);
		return;
	}
	if (!pair.gate.try_enter())
		return;
	End &end = pair.end[random.below(2)];

	if (random.one_in(3))
		end.peer->rq.post(random, 8);
	end.sq.post(random, 1 + random.below(8));
	pair.gate.leave();
}

void Group::use_cq(Random &random)
{
	CompletionQueue &cq = cqs[random.below(kCqs)];

	if (random.one_in(kResizeOneIn))
		cq.resize(random);
	if (random.one_in(kModerateOneIn))
		cq.moderate(random);
	cq.use(random);
}

void Group::use(Random &random)
{
	if (random.one_in(kRecreateOneIn)) {
		recreate(random);
		return;
	}
	if (!gate_.try_enter())
		return;
	if (random.one_in(3))
		use_pair(random);
	else
		use_cq(random);
	gate_.leave();
}

void Group::post(Random &random)
{
	Pair &pair = pairs[random.below(kPairs)];

	if (!gate_.try_enter())
		return;
	if (pair.gate.try_enter()) {
		pair.end[0].rq.post(random, 8);
		pair.end[1].rq.post(random, 8);
		pair.end[random.below(2)].sq.post(random, 1 + random.below(4));
		pair.gate.leave();
	}
	gate_.leave();
}

void use_groups(Random &random)
{
	groups[random.below(groups.size())]->use(random);
}

void post_somewhere(Random &random)
{
	if (groups_ready)
		groups[random.below(groups.size())]->post(random);
}

void make_groups(int n, std::vector<std::unique_ptr<Channel>> &channels)
{
	Random random(0);

	for (int i = 0; i < n; i++)
		groups.push_back(std::make_unique<Group>(i, channels, random));
	groups_ready = true;
}

void finish_groups()
{
	Random random(1);

	for (auto &group : groups)
		group->finish(random);
}

/* --------------------------------------------------------------- watching -- */

void Group::look()
{
	if (!gate_.try_enter()) {
		if (++closed_ticks_ == 50 * patience_ticks())
			fail("destroying a group does not end");
		return;
	}
	closed_ticks_ = 0;
	for (CompletionQueue &cq : cqs) {
		if (!cq.look())
			fail("%s: an arm that was sure has not fired", cq.name().c_str());
	}
	for (Pair &pair : pairs) {
		if (!pair.gate.try_enter())
			continue;
		for (Queue *q : pair.queues()) {
			if (!q->look())
				fail("a completion that must come does not, in %s", q->cq->name().c_str());
		}
		pair.gate.leave();
	}
	gate_.leave();
}

void look_at_groups()
{
	for (auto &group : groups)
		group->look();
}

void Group::show() const
{
	printf(" group %d\n", number_);
	for (const CompletionQueue &cq : cqs)
		cq.show();
	for (const Pair &pair : pairs)
		pair.show();
}

} // namespace torture
