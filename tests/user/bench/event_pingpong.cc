// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A ping-pong of two processes through completion channels, and one of the same two through eventfds.
//
//	bench_event_pingpong DEVICE [SECONDS [ROUNDS]]
//
// One way is: block in ibv_get_cq_event, ack, arm, poll, post a 64-byte send. "channel" is what a program does that cares about
// latency: it polls and answers, and while the answer is under way it acks, arms and polls again; the message is inline, all
// completions come in one poll, receives are posted by the dozen. "textbook" is the same in the order of the manual pages: ack,
// arm, poll, answer. They and the eventfds alternate, ROUNDS (41) times about SECONDS (0.06) each, so that whatever else the
// machine does hits all. Prints the median of each (half a round trip), the median of the rounds' ratios to the eventfds with
// what three of four rounds stay below, and what the steps of one way cost: the calls that do not block are timed one by
// one, in a pass of its own.

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <infiniband/verbs.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t message_size = 64;
constexpr int depth = 64;
constexpr int batch = 16; // receives posted at a time

[[noreturn]] void die(const char *what)
{
	std::perror(what);
	std::_Exit(1);
}

// Each process keeps to a CPU of its own, so that no run is lucky or unlucky with the scheduler.
void keep_to_cpu(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % static_cast<unsigned int>(sysconf(_SC_NPROCESSORS_ONLN)), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

template <class T> T *must(T *object, const char *what)
{
	if (!object)
		die(what);
	return object;
}

void must(int rc, const char *what)
{
	if (rc > 0)
		errno = rc;
	if (rc)
		die(what);
}

// What one end tells the other.
struct Address {
	uint32_t qpn;
	ibv_gid gid;
};

enum Step { POST, GET, ACK, ARM, POLL, STEPS };
constexpr const char *step_names[STEPS] = {"post", "get", "ack", "arm", "poll"};

// One process's end of the connection.
class End {
public:
	explicit End(const char *device)
	{
		open(device);
		pd_ = must(ibv_alloc_pd(context_), "ibv_alloc_pd");
		mr_ = must(ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
		channel_ = must(ibv_create_comp_channel(context_), "ibv_create_comp_channel");
		recv_cq_ = must(ibv_create_cq(context_, depth, nullptr, channel_, 0), "ibv_create_cq");
		send_cq_ = must(ibv_create_cq(context_, depth, nullptr, nullptr, 0), "ibv_create_cq");

		ibv_qp_init_attr init{};
		init.send_cq = send_cq_;
		init.recv_cq = recv_cq_;
		init.qp_type = IBV_QPT_RC;
		init.cap = {depth, depth, 1, 1, message_size};
		qp_ = must(ibv_create_qp(pd_, &init), "ibv_create_qp");
	}

	Address address() const { return {qp_->qp_num, gid_}; }

	void connect(const Address &peer)
	{
		ibv_qp_attr a{};

		a.qp_state = IBV_QPS_INIT;
		a.port_num = 1;
		must(ibv_modify_qp(qp_, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		     "INIT");
		for (int i = 0; i < depth / 2; i++)
			receive();
		a.qp_state = IBV_QPS_RTR;
		a.path_mtu = IBV_MTU_1024;
		a.dest_qp_num = peer.qpn;
		a.min_rnr_timer = 12;
		a.ah_attr.is_global = 1;
		a.ah_attr.port_num = 1;
		a.ah_attr.grh.dgid = peer.gid;
		a.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index_);
		a.ah_attr.grh.hop_limit = 64;
		must(ibv_modify_qp(qp_, &a,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		     "RTR");
		a.qp_state = IBV_QPS_RTS;
		a.timeout = 14;
		a.retry_cnt = a.rnr_retry = 7;
		must(ibv_modify_qp(qp_, &a,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC),
		     "RTS");
		arm();
	}

	// Every so often a completion tells that the queue has room.
	void send()
	{
		ibv_sge sge{reinterpret_cast<uintptr_t>(memory_.data()), message_size, mr_->lkey};
		ibv_send_wr wr{}, *bad;
		ibv_wc wc[4];

		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.opcode = IBV_WR_SEND;
		wr.send_flags = IBV_SEND_INLINE;
		if (sent_++ % (depth / 4) == 0) {
			wr.send_flags |= IBV_SEND_SIGNALED;
			ibv_poll_cq(send_cq_, 4, wc);
		}
		must(ibv_post_send(qp_, &wr, &bad), "ibv_post_send");
	}

	void get_event()
	{
		ibv_cq *cq;
		void *context;

		must(ibv_get_cq_event(channel_, &cq, &context), "ibv_get_cq_event");
		events_++;
	}
	void ack()
	{
		if (events_)
			ibv_ack_cq_events(recv_cq_, events_);
		events_ = 0;
	}
	void arm() { must(ibv_req_notify_cq(recv_cq_, 0), "ibv_req_notify_cq"); }
	// Everything that is there: fewer than asked for means that the queue is empty.
	int poll()
	{
		ibv_wc wc[4];
		const int n = ibv_poll_cq(recv_cq_, 4, wc);

		if (n < 0 || (n && wc[0].status))
			die("ibv_poll_cq");
		return n;
	}

	// The next message, in the order of the manual pages.
	void wait_textbook()
	{
		while (!arrived_) {
			get_event();
			rearm();
		}
		taken();
	}

	// The next message; rearm() is due once it is answered.
	void wait()
	{
		while (!arrived_) {
			get_event();
			arrived_ = poll();
			if (!arrived_)
				rearm();
		}
		taken();
	}

	// What came since the poll and before the arm raises no event, hence the second poll.
	void rearm()
	{
		ack();
		arm();
		arrived_ += poll();
	}

	void receive()
	{
		ibv_sge sge{reinterpret_cast<uintptr_t>(memory_.data()) + message_size, message_size, mr_->lkey};
		ibv_recv_wr wr{}, *bad;

		wr.sg_list = &sge;
		wr.num_sge = 1;
		must(ibv_post_recv(qp_, &wr, &bad), "ibv_post_recv");
	}

private:
	void taken()
	{
		arrived_--;
		if (++received_ == batch) {
			for (; received_; received_--)
				receive();
		}
	}

	void open(const char *name)
	{
		int n = 0;
		ibv_device **list = must(ibv_get_device_list(&n), "ibv_get_device_list");

		for (int i = 0; i < n && !context_; i++)
			if (!std::strcmp(ibv_get_device_name(list[i]), name))
				context_ = ibv_open_device(list[i]);
		ibv_free_device_list(list);
		must(context_, name);
		// an IPv4 address, which every device here has
		for (int i = 0; i < 64 && gid_index_ < 0; i++) {
			ibv_gid_entry entry{};

			if (!ibv_query_gid_ex(context_, 1, static_cast<uint32_t>(i), &entry, 0) &&
			    entry.gid.raw[10] == 0xff && entry.gid.raw[11] == 0xff) {
				gid_index_ = i;
				gid_ = entry.gid;
			}
		}
		if (gid_index_ < 0) {
			std::fprintf(stderr, "%s has no GID of an IPv4 address\n", name);
			std::_Exit(1);
		}
	}

	std::array<char, 4096> memory_{};
	ibv_context *context_ = nullptr;
	int gid_index_ = -1;
	ibv_gid gid_{};
	ibv_pd *pd_;
	ibv_mr *mr_;
	ibv_comp_channel *channel_;
	ibv_cq *recv_cq_, *send_cq_;
	ibv_qp *qp_;
	uint64_t sent_ = 0;
	unsigned int events_ = 0; // not acked yet
	int arrived_ = 0, received_ = 0;
};

void put(int fd, uint64_t value)
{
	if (write(fd, &value, sizeof(value)) != sizeof(value))
		die("write to eventfd");
}

uint64_t get(int fd)
{
	uint64_t value;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		die("read from eventfd");
	return value;
}

// The two processes and what they share.
struct Link {
	int ping = eventfd(0, 0), pong = eventfd(0, 0);
	int to_child[2], to_parent[2];

	Link()
	{
		if (ping < 0 || pong < 0 || pipe(to_child) || pipe(to_parent))
			die("pipe");
	}
};

void exchange(End &end, int in, int out)
{
	const Address mine = end.address();
	Address peer;

	if (write(out, &mine, sizeof(mine)) != sizeof(mine) || read(in, &peer, sizeof(peer)) != sizeof(peer))
		die("exchange of addresses");
	end.connect(peer);
	char ready = 0;
	if (write(out, &ready, 1) != 1 || read(in, &ready, 1) != 1)
		die("exchange of addresses");
}

enum class Order { answer_first, textbook };

// What the parent asks for is the number of messages, and in this bit the order.
constexpr uint64_t textbook_bit = 1ull << 62;

void answer(End &end, Order order)
{
	if (order == Order::textbook) {
		end.wait_textbook();
		end.send();
	} else {
		end.wait();
		end.send();
		end.rearm();
	}
}

void ask(End &end, Order order)
{
	end.send();
	if (order == Order::textbook) {
		end.wait_textbook();
	} else {
		end.rearm();
		end.wait();
	}
}

// The child answers: through eventfds as long as it is asked so, through the channel that many times.
[[noreturn]] void child(const Link &link, const char *device)
{
	End end(device);

	exchange(end, link.to_child[0], link.to_parent[1]);
	for (;;) {
		const uint64_t messages = get(link.ping);

		if (messages == 1) {
			put(link.pong, 1);
			continue;
		}
		const Order order = messages & textbook_bit ? Order::textbook : Order::answer_first;

		for (uint64_t i = 1; i < (messages & ~textbook_bit); i++)
			answer(end, order);
	}
}

template <class F> double microseconds_each(uint64_t n, F &&once)
{
	const auto start = Clock::now();

	for (uint64_t i = 0; i < n; i++)
		once();
	return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / static_cast<double>(n);
}

double eventfd_way(const Link &link, uint64_t n)
{
	return microseconds_each(n,
				 [&] {
					 put(link.ping, 1);
					 get(link.pong);
				 }) /
	       2;
}

// Above 1, the number says how many messages the child is to answer.
double channel_way(const Link &link, End &end, Order order, uint64_t n)
{
	put(link.ping, (n + 1) | (order == Order::textbook ? textbook_bit : 0));
	const double us = microseconds_each(n, [&] { ask(end, order); }) / 2;
	if (order == Order::answer_first)
		end.rearm(); // as the other order leaves it
	return us;
}

template <class F> void timed(double &sum, F &&step)
{
	const auto start = Clock::now();

	step();
	sum += std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// The steps one by one; the answer has come when ibv_get_cq_event is called, so that it does not block.
std::array<double, STEPS> steps(const Link &link, End &end, uint64_t n)
{
	std::array<double, STEPS> sum{};
	double nothing = 0;

	put(link.ping, (n + 1) | textbook_bit);
	for (uint64_t i = 0; i < n; i++) {
		timed(sum[POST], [&] { end.send(); });
		usleep(500);
		timed(sum[GET], [&] { end.get_event(); });
		timed(sum[ACK], [&] { end.ack(); });
		timed(sum[ARM], [&] { end.arm(); });
		timed(sum[POLL], [&] { end.poll(); });
		end.receive();
		timed(nothing, [] {});
	}
	for (double &s : sum)
		s = std::max(0.0, (s - nothing) / static_cast<double>(n));
	return sum;
}

// The value that this part of them is below.
double quantile(std::vector<double> values, double part)
{
	std::sort(values.begin(), values.end());
	return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

double median(const std::vector<double> &values)
{
	return quantile(values, 0.5);
}

// One order's figures.
struct Series {
	const char *name, *ratio;
	Order order;
	std::vector<double> ways{}, ratios{};

	void print() const
	{
		std::printf("event_pingpong %u %s %.4g us\n", message_size, name, median(ways));
		std::printf("event_pingpong %u %s %.3g times\n", message_size, ratio, median(ratios));
		std::printf("event_pingpong %u %s_p75 %.3g times\n", message_size, ratio, quantile(ratios, 0.75));
	}
};

} // namespace

int main(int argc, char **argv)
{
	if (argc < 2) {
		std::fprintf(stderr, "usage: %s DEVICE [SECONDS [ROUNDS]]\n", argv[0]);
		return 2;
	}
	const double seconds = argc > 2 ? std::atof(argv[2]) : 0.06;
	const int rounds = argc > 3 ? std::max(1, std::atoi(argv[3])) : 41;
	const Link link;
	const pid_t pid = fork();

	if (pid < 0)
		die("fork");
	keep_to_cpu(pid ? 0 : 1);
	if (pid == 0)
		child(link, argv[1]);

	End end(argv[1]);
	std::vector<double> eventfds;
	std::array<Series, 2> series{
		{{"channel", "ratio", Order::answer_first}, {"textbook", "textbook_ratio", Order::textbook}}};

	exchange(end, link.to_parent[0], link.to_child[1]);
	const auto n = [&](double us) { return static_cast<uint64_t>(seconds * 1e6 / (2 * us)) + 1; };
	const uint64_t n_eventfd = n(eventfd_way(link, 200)),
		       n_channel = n(channel_way(link, end, Order::answer_first, 200));
	for (int i = 0; i < rounds; i++) {
		eventfds.push_back(eventfd_way(link, n_eventfd));
		for (Series &s : series) {
			s.ways.push_back(channel_way(link, end, s.order, n_channel));
			s.ratios.push_back(s.ways.back() / eventfds.back());
		}
	}
	const auto each = steps(link, end, 300);

	kill(pid, SIGKILL);
	waitpid(pid, nullptr, 0);
	std::printf("event_pingpong 0 eventfd %.4g us\n", median(eventfds));
	for (const Series &s : series)
		s.print();
	for (int i = 0; i < STEPS; i++)
		std::printf("event_pingpong %u step_%s %.3g us\n", message_size, step_names[i], each[i]);
	return 0;
}
