/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Messages that are lost, late, doubled, overtaken or corrupt on their way (docs/faults.md), one attempt at a time. */
#include "fault.h"

#include <arpa/inet.h>

using namespace conformance;

class FaultMessage : public FaultRcTest {
protected:
	void fault(const std::string &what)
	{
		require_ok(try_control(dev, "fault message " + what), "fault message " + what);
	}

	/* a message of each size: one piece, and many */
	static constexpr uint32_t kSizes[] = {0, 64, 200000};

	static QpOptions large()
	{
		QpOptions options;

		options.memory = 262144;
		return options;
	}
	/* not so patient that a lost message takes long, nor so impatient that a slow machine loses one */
	static Path patient()
	{
		Path path;

		path.timeout = 12; /* 16 ms */
		path.retry_cnt = 7;
		return path;
	}

	/* Sent, received once, with its data, and nothing else. */
	void expect_delivered(Pair &p, uint32_t length, uint32_t id)
	{
		p.a.mem.fill(id, 0, length);
		recv(p.b, p.b.mem, 0, length, 1000 + id);
		Send(IBV_WR_SEND, id).from(p.a.mem, 0, length).post(p.a);
		expect_ok(p.a.scq, id);
		EXPECT_EQ(expect_ok(p.b.rcq, 1000 + id).byte_len, length);
		EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), length), -1);
		expect_empty(p.b.rcq);
		expect_empty(p.a.scq);
	}
};

/* ------------------------------------------------------- reliable connections */

/* What is lost is sent again when the timer says so: once for each loss, and executed once. */
TEST_F(FaultMessage, LostIsRetried)
{
	Pair p = make_pair(large(), patient());
	uint32_t id = 0;

	for (const char *action : {"lose", "corrupt"}) {
		for (uint32_t size : kSizes) {
			SCOPED_TRACE(std::string(action) + " " + std::to_string(size));
			const uint64_t retries = counter("retries"), icrc = counter("icrc_dropped");
			const auto start = Clock::now();

			fault(std::string(action) + " nth 1 times 3");
			expect_delivered(p, size, ++id);
			EXPECT_GE(Clock::now() - start, Millis(3 * 16));
			EXPECT_EQ(counter("retries") - retries, 3u);
			EXPECT_EQ(counter("icrc_dropped") - icrc, std::string(action) == "corrupt" ? 3u : 0u);
			expect_all_over();
			require_ok(try_control(dev, "fault clear"), "clear");
		}
	}
}

/* One retry more than there are: the status that says so, nothing executed, the peer is well. */
TEST_F(FaultMessage, LostForGood)
{
	Path path = patient();
	path.retry_cnt = 2;
	Pair p = make_pair({}, path);
	const uint64_t exceeded = counter("retries_exceeded");

	recv(p.b, p.b.mem, 0, 64, 10);
	fault("lose every 1 qpn " + qpn(p.a));
	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
	Send(IBV_WR_SEND, 2).from(p.a.mem, 0, 8).post(p.a);
	expect_wc(p.a.scq, IBV_WC_RETRY_EXC_ERR, 1);
	expect_wc(p.a.scq, IBV_WC_WR_FLUSH_ERR, 2);
	EXPECT_EQ(state_of(p.b), IBV_QPS_RTS);
	expect_empty(p.b.rcq);
	EXPECT_EQ(the_fault().at("struck"), "3") << "the first and two retries";
	EXPECT_EQ(counter("retries_exceeded") - exceeded, 1u);
	expect_no_async(dev, Millis(20));
}

/* Exactly the Nth attempt of this QP; others go on. */
TEST_F(FaultMessage, TheNthOfAQp)
{
	Pair p = make_pair({}, patient()), other = make_pair({}, patient());
	uint64_t before = counter("retries");

	fault("lose nth 4 qpn " + qpn(p.a));
	for (uint32_t i = 1; i <= 3; i++)
		expect_delivered(p, 64, i);
	expect_delivered(other, 64, 1);
	expect_delivered(other, 64, 2);
	EXPECT_EQ(counter("retries"), before);
	EXPECT_EQ(the_fault().at("seen"), "3");
	expect_delivered(p, 64, 4);
	EXPECT_EQ(counter("retries") - before, 1u);
	expect_delivered(p, 64, 5);
	EXPECT_EQ(the_fault().at("struck"), "1");
}

/* All operations: what was lost is done once, an atomic too. */
TEST_F(FaultMessage, OperationsAreDoneOnce)
{
	for (const char *action :
	     {"lose every 2", "corrupt every 2", "reorder every 2", "duplicate every 1", "delay every 1 usec 500"}) {
		SCOPED_TRACE(action);
		Pair p = make_pair({}, patient());
		uint64_t sum = 0;

		fault(action);
		for (uint64_t i = 1; i <= 6; i++) {
			Send(IBV_WR_ATOMIC_FETCH_AND_ADD, i).from(p.a.mem, 0, 8).to(p.b.mem).operands(i).post(p.a);
			expect_ok(p.a.scq, i);
			EXPECT_EQ(memcmp(p.a.mem.data(), &sum, 8), 0) << i;
			sum += i;
			EXPECT_EQ(memcmp(p.b.mem.data(), &sum, 8), 0) << i;
			p.a.mem.fill(static_cast<uint32_t>(i), 64, 64);
			Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 64, 64).to(p.b.mem, 64).post(p.a);
			expect_ok(p.a.scq, i);
			EXPECT_EQ(differs(p.a.mem.data() + 64, p.b.mem.data() + 64, 64), -1);
			Send(IBV_WR_RDMA_READ, i).from(p.a.mem, 128, 64).to(p.b.mem, 64).post(p.a);
			expect_ok(p.a.scq, i);
			EXPECT_EQ(differs(p.a.mem.data() + 128, p.b.mem.data() + 64, 64), -1);
		}
		EXPECT_GE(std::stoul(the_fault().at("struck")), 9u);
		require_ok(try_control(dev, "fault clear"), "clear");
	}
}

/* The responder sees it twice, and executes it once. */
TEST_F(FaultMessage, DuplicateIsExecutedOnce)
{
	Pair p = make_pair(large(), patient());
	const uint64_t before = counter("duplicates");
	uint32_t id = 0;

	fault("duplicate every 1");
	/* one that is executed twice would take this one, and complete it */
	for (uint32_t size : kSizes) {
		id++;
		p.a.mem.fill(id, 0, size);
		recv(p.b, p.b.mem, 0, size, 2 * id);
		recv(p.b, p.b.mem, 0, size, 2 * id + 1);
		Send(IBV_WR_SEND, id).from(p.a.mem, 0, size).post(p.a);
		expect_ok(p.a.scq, id);
		expect_ok(p.b.rcq, 2 * id);
		EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), size), -1);
		expect_stays_empty(p.b.rcq, Millis(20));
		Send(IBV_WR_RDMA_WRITE_WITH_IMM, id).from(p.a.mem, 0, size).to(p.b.mem).imm(id).post(p.a);
		expect_ok(p.a.scq, id);
		expect_ok(p.b.rcq, 2 * id + 1);
	}
	EXPECT_EQ(counter("duplicates") - before, 2u * id);
}

/* Overtaken: a sequence NAK, and it is sent again at once, in order; each time uses up a retry. */
TEST_F(FaultMessage, OvertakenIsRetriedAtOnce)
{
	Path path;
	path.timeout = 31; /* two hours: no timer helps */
	path.retry_cnt = 3;
	Pair p = make_pair(large(), path);
	const uint64_t naks = counter("nak_sequence"), retries = counter("retries");
	uint32_t id = 0;

	for (uint32_t size : kSizes) {
		fault("reorder nth 1 times 3");
		expect_delivered(p, size, ++id);
	}
	EXPECT_EQ(counter("nak_sequence") - naks, 3u * id);
	EXPECT_EQ(counter("retries") - retries, 3u * id);
	fault("reorder nth 1 times 4");
	recv(p.b, p.b.mem, 0, 64, 10);
	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
	expect_wc(p.a.scq, IBV_WC_RETRY_EXC_ERR, 1);
	expect_empty(p.b.rcq);
}

/* Late by what was asked for, at least; what was posted behind it comes behind it. */
TEST_F(FaultMessage, Delayed)
{
	Path path;
	path.timeout = 20; /* 4 s */
	Pair p = make_pair(large(), path);
	const uint64_t retries = counter("retries");
	uint32_t id = 0;

	for (uint32_t size : kSizes) {
		const auto start = Clock::now();

		fault("delay nth 1 usec 60000");
		expect_delivered(p, size, ++id);
		EXPECT_GE(Clock::now() - start, Millis(60));
	}
	EXPECT_EQ(counter("retries"), retries);
	fault("delay nth 1 usec 50000");
	for (int i = 1; i <= 3; i++)
		recv(p.b, p.b.mem, 0, 64, 10 + i);
	for (int i = 1; i <= 3; i++)
		Send(IBV_WR_SEND, i).from(p.a.mem, 0, 8).post(p.a);
	for (int i = 1; i <= 3; i++) {
		expect_ok(p.a.scq, i);
		expect_ok(p.b.rcq, 10 + i);
	}
}

/* Later than the timer waits: it is lost to it, and retried. */
TEST_F(FaultMessage, DelayedBeyondTheTimeout)
{
	Pair p = make_pair({}, patient());
	const uint64_t retries = counter("retries");

	fault("delay nth 1 usec 10000000");
	expect_delivered(p, 64, 1);
	EXPECT_EQ(counter("retries") - retries, 1u);
}

/* What waits goes with its QP, whatever end that takes, at once. */
TEST_F(FaultMessage, DelayedUntilItsQpHasGone)
{
	Path path;
	path.timeout = 0;
	const auto start = Clock::now();

	for (int end = 0; end < 4; end++) {
		Pair p = make_pair({}, path);

		fault("delay nth 1 usec 10000000");
		Send(IBV_WR_RDMA_WRITE, 1).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
		expect_empty(p.a.scq);
		if (end == 0) {
			to_error(p.a);
			expect_wc(p.a.scq, IBV_WC_WR_FLUSH_ERR, 1);
		} else if (end == 1) {
			modify(p.a, IBV_QPS_RESET);
			modify(p.b, IBV_QPS_RESET);
			p.connect(dev, path);
			Send(IBV_WR_RDMA_WRITE, 2).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
			expect_ok(p.a.scq, 2);
		} else if (end == 2) {
			p.b.qp.reset();
		}
	}
	EXPECT_LT(Clock::now() - start, Millis(9000));
}

TEST_F(FaultMessage, EverySoManyAndSoOften)
{
	UdEnd a(dev, pd), b(dev, pd);
	std::vector<int> arrived;

	fault("lose every 3 times 2");
	for (int i = 1; i <= 12; i++)
		recv(b, b.mem, 0, 128, i);
	for (int i = 1; i <= 12; i++) {
		Send(IBV_WR_SEND_WITH_IMM, i).from(a.mem, 0, 8).ud(a.self, b.num(), b.qkey).imm(i).post(a);
		expect_ok(a.scq, i);
	}
	for (const ibv_wc &wc : poll_n(b.rcq, 10))
		arrived.push_back(static_cast<int>(ntohl(wc.imm_data)));
	EXPECT_EQ(arrived, (std::vector<int>{1, 2, 4, 5, 7, 8, 9, 10, 11, 12}));
	expect_empty(b.rcq);
}

/* ------------------------------------------------------------ nobody answers */

class FaultDatagram : public FaultMessage {
protected:
	/* Datagrams 1 to n, and in which order they arrive. */
	std::vector<int> send(int n)
	{
		std::vector<int> arrived;
		ibv_wc wc;

		for (int i = 1; i <= n; i++) {
			while (free_receives < 2) {
				recv(b, b.mem, 0, 128, 1);
				free_receives++;
			}
			a.mem.fill(static_cast<uint32_t>(i), 0, 64);
			Send(IBV_WR_SEND_WITH_IMM, i).from(a.mem, 0, 64).ud(a.self, b.num(), b.qkey).imm(i).post(a);
			expect_ok(a.scq, i);
			while (ibv_poll_cq(b.rcq, 1, &wc) == 1) {
				EXPECT_EQ(wc.byte_len, 40u + 64);
				expect_data(static_cast<int>(ntohl(wc.imm_data)));
				arrived.push_back(static_cast<int>(ntohl(wc.imm_data)));
				free_receives--;
			}
		}
		return arrived;
	}
	/* All receives take the same memory: the last one's data is there. */
	void expect_data(int i)
	{
		if (ends_with_own_data) {
			EXPECT_EQ(differs(a.mem.data(), b.mem.data() + 40, 64), -1) << i;
		}
	}

	bool ends_with_own_data = true;
	int free_receives = 0;
	UdEnd a{dev, pd};
	UdEnd b{dev, pd};
};

/* Lost and corrupt ones: the sender completes successfully, the receiver sees nothing. */
TEST_F(FaultDatagram, Lost)
{
	const uint64_t icrc = counter("icrc_dropped");

	fault("lose nth 2");
	EXPECT_EQ(send(3), (std::vector<int>{1, 3}));
	fault("corrupt nth 2 times 2");
	EXPECT_EQ(send(4), (std::vector<int>{1, 4}));
	EXPECT_EQ(counter("icrc_dropped") - icrc, 2u);
}

/* By chance, but the same seed gives the same, whatever was armed and struck before. */
TEST_F(FaultDatagram, SameSeedSamePattern)
{
	constexpr int kMessages = 200;
	auto pattern = [&](const std::string &seed) {
		fault("lose permille 300 seed " + seed);
		const auto arrived = send(kMessages);

		EXPECT_EQ(the_fault().at("seen"), std::to_string(kMessages));
		EXPECT_EQ(the_fault().at("struck"), std::to_string(kMessages - arrived.size()));
		require_ok(try_control(dev, "fault clear"), "clear");
		return arrived;
	};
	const auto one = pattern("42"), again = pattern("42"), other = pattern("43");

	EXPECT_EQ(one, again);
	EXPECT_NE(one, other);
	EXPECT_GT(one.size(), 110u);
	EXPECT_LT(one.size(), 170u);
}

/* Twice, as a network may. */
TEST_F(FaultDatagram, Duplicate)
{
	fault("duplicate nth 2");
	EXPECT_EQ(send(3), (std::vector<int>{1, 2, 2, 3}));
}

/* The next one overtakes it, with the data that it was sent with. */
TEST_F(FaultDatagram, Overtaken)
{
	ends_with_own_data = false;
	fault("reorder nth 2");
	EXPECT_EQ(send(4), (std::vector<int>{1, 3, 2, 4}));
	fault("reorder every 2");
	EXPECT_EQ(send(7), (std::vector<int>{1, 3, 2, 5, 4, 7, 6}));
}

/* Its memory is its own: the sender may write to it. */
TEST_F(FaultDatagram, OvertakenKeepsItsData)
{
	Region want(pd, 64);

	recv(b, b.mem, 0, 128, 1);
	recv(b, b.mem, 4096, 128, 2);
	fault("reorder nth 1");
	a.mem.fill(5, 0, 64);
	memcpy(want.data(), a.mem.data(), 64);
	Send(IBV_WR_SEND, 1).from(a.mem, 0, 64).ud(a.self, b.num(), b.qkey).post(a);
	expect_ok(a.scq, 1);
	a.mem.fill(6, 0, 64);
	expect_stays_empty(b.rcq, Millis(20));
	Send(IBV_WR_SEND, 2).from(a.mem, 0, 64).ud(a.self, b.num(), b.qkey).post(a);
	expect_ok(a.scq, 2);
	poll_n(b.rcq, 2);
	EXPECT_EQ(differs(b.mem.data() + 40, a.mem.data(), 64), -1) << "the second comes first";
	EXPECT_EQ(differs(b.mem.data() + 4096 + 40, want.data(), 64), -1);
}

/* One that nothing overtakes any more goes with its QP, or with its reset. */
TEST_F(FaultDatagram, OvertakenByNone)
{
	for (int i = 0; i < 2; i++) {
		UdEnd c(dev, pd);

		fault("reorder nth 1");
		Send(IBV_WR_SEND, 1).from(c.mem, 0, 64).ud(c.self, b.num(), b.qkey).post(c);
		expect_ok(c.scq, 1);
		if (i == 0)
			continue;
		modify(c, IBV_QPS_RESET);
		to_init(c, Path());
		to_rtr(dev, c, 0, Path());
		to_rts(dev, c, Path());
		recv(b, b.mem, 0, 128, 7);
		recv(b, b.mem, 0, 128, 8);
		Send(IBV_WR_SEND, 2).from(c.mem, 0, 64).ud(c.self, b.num(), b.qkey).post(c);
		expect_ok(c.scq, 2);
		expect_ok(b.rcq, 7);
		expect_stays_empty(b.rcq, Millis(20));
	}
}

TEST_F(FaultDatagram, Delayed)
{
	const auto start = Clock::now();

	fault("delay nth 2 usec 60000");
	EXPECT_EQ(send(3), (std::vector<int>{1, 2, 3}));
	EXPECT_GE(Clock::now() - start, Millis(60));
}

/* Unreliable connections: what is lost, corrupt or out of order is gone; a duplicate is dropped. */
TEST_F(FaultMessage, UnreliableConnection)
{
	struct {
		const char *action;
		const char *counter;
		bool arrives;
	} rows[] = {{"lose", "retries", false},
		    {"corrupt", "icrc_dropped", false},
		    {"reorder", "uc_dropped", false},
		    {"duplicate", "duplicates", true}};
	QpOptions options;
	options.type = IBV_QPT_UC;
	Pair p = make_pair(options);

	for (auto &row : rows) {
		SCOPED_TRACE(row.action);
		const uint64_t before = counter(row.counter);

		recv(p.b, p.b.mem, 0, 64, 1);
		recv(p.b, p.b.mem, 0, 64, 2);
		fault(std::string(row.action) + " nth 1");
		for (uint32_t i = 1; i <= 2; i++) {
			Send(IBV_WR_SEND_WITH_IMM, i).from(p.a.mem, 0, 8).imm(i).post(p.a);
			expect_ok(p.a.scq, i);
		}
		EXPECT_EQ(ntohl(expect_ok(p.b.rcq, 1).imm_data), row.arrives ? 1u : 2u);
		if (row.arrives)
			expect_ok(p.b.rcq, 2);
		expect_stays_empty(p.b.rcq, Millis(20));
		EXPECT_EQ(counter(row.counter) - before, std::string(row.action) == "lose" ? 0u : 1u);
		modify(p.a, IBV_QPS_RESET);
		modify(p.b, IBV_QPS_RESET);
		p.connect(dev, Path());
	}
}
