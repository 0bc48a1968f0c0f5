// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// heraldctl's parts that touch nothing: tables, names of events, tracepoint formats and pages, and what it says when
// something fails: what, which object, what to do.
#include "async_event.h"
#include "control.h"
#include "events.h"
#include "faults.h"
#include "module_info.h"
#include "table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

using namespace heraldctl;

namespace {

template <typename Function> Failure failure_of(Function function)
{
	try {
		function();
	} catch (const Failure &failure) {
		return failure;
	}
	ADD_FAILURE() << "no failure";
	return {Exit::Ok, ""};
}

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != std::string::npos;
}

/* One line that names these */
void expect_says(const Failure &failure, Exit exit, const Strings &parts)
{
	const std::string text = failure.what();

	EXPECT_EQ(failure.exit(), exit) << text;
	EXPECT_FALSE(contains(text, "\n")) << text;
	for (const std::string &part : parts)
		EXPECT_TRUE(contains(text, part)) << "no '" << part << "' in: " << text;
}

/* ------------------------------------------------------------------------------------------------------ tables -- */

TEST(Table, RowsHaveTheColumnsOfTheFirstLine)
{
	const Table table = Table::parse("cqn pid state\n5 12 ok\n6 - dead\n", "cqs");

	EXPECT_EQ(table.columns, (Strings{"cqn", "pid", "state"}));
	ASSERT_EQ(table.rows.size(), 2U);
	EXPECT_EQ(table.rows[1], (Strings{"6", "-", "dead"}));
}

TEST(Table, OfNoObjectsHasItsColumns)
{
	const Table table = Table::parse("qpn pid\n", "qps");

	EXPECT_EQ(table.columns.size(), 2U);
	EXPECT_TRUE(table.rows.empty());
}

TEST(Table, RaggedOrEmptyIsAFailureThatNamesIt)
{
	expect_says(failure_of([] { Table::parse("a b\n1 2 3\n", "FILE"); }), Exit::Failed, {"FILE", "1 2 3"});
	expect_says(failure_of([] { Table::parse("\n", "FILE"); }), Exit::Failed, {"FILE"});
}

TEST(Table, NumbersAreToTheRightAndNoLineEndsInBlanks)
{
	Table table = Table::parse("cqn state\n5 ok\n100 dead\n", "cqs");

	table.prepend("device", "hd0");
	EXPECT_EQ(table.text(), "device  cqn  state\nhd0       5  ok\nhd0     100  dead\n");
}

/* ------------------------------------------------------------------------------------------------------ events -- */

TEST(Events, EachNameIsFoundAndUnique)
{
	EXPECT_EQ(events().size(), 21U);
	for (const Event &event : events())
		EXPECT_EQ(find_event(event.name), &event);
	EXPECT_EQ(find_event("qp-nonsense"), nullptr);
}

TEST(Events, NumbersAreForObjectsOnly)
{
	EXPECT_EQ(provoke_command("qp-fatal", "17"), "provoke qp-fatal 17");
	EXPECT_EQ(provoke_command("port-err", std::nullopt), "provoke port-err");
	expect_says(failure_of([] { provoke_command("srq-err", std::nullopt); }), Exit::Usage,
		    {"srq-err", "SRQ", "show DEVICE srqs"});
	expect_says(failure_of([] { provoke_command("cq-err", std::nullopt); }), Exit::Usage, {"show DEVICE cqs"});
	expect_says(failure_of([] { provoke_command("comm-est", std::nullopt); }), Exit::Usage, {"show DEVICE qps"});
	expect_says(failure_of([] { provoke_command("device-fatal", "1"); }), Exit::Usage, {"no number", "device"});
}

TEST(Events, AnUnknownOneIsAnsweredWithAllThereAre)
{
	const Failure failure = failure_of([] { provoke_command("qp-dead", "1"); });

	expect_says(failure, Exit::Usage, {"'qp-dead'", "qp-fatal", "device-speed-change"});
}

/* ------------------------------------------------------------------------------------------------------ faults -- */

TEST(Faults, CommandLinesBecomeControlLines)
{
	EXPECT_EQ(fault_command({"message", {"lose"}, {}}), "fault message lose");
	EXPECT_EQ(fault_command({"message", {"delay"}, {{"usec", 5}, {"every", 3}, {"qpn", 17}, {"times", 2}}}),
		  "fault message delay every 3 times 2 qpn 17 usec 5");
	EXPECT_EQ(fault_command({"message", {"corrupt"}, {{"permille", 1}, {"seed", ~0ULL}}}),
		  "fault message corrupt permille 1 seed 18446744073709551615");
	EXPECT_EQ(fault_command({"rnr", {}, {{"qpn", 17}}}), "fault rnr 17 1");
	EXPECT_EQ(fault_command({"rnr", {}, {{"qpn", 17}, {"times", 4}}}), "fault rnr 17 4");
	EXPECT_EQ(fault_command({"verb", {"create-qp", "ENOMEM"}, {}}), "fault verb create-qp 1 12 times 1");
	EXPECT_EQ(fault_command({"verb", {"post-send", "77"}, {{"nth", 3}, {"times", 2}}}),
		  "fault verb post-send 3 77 times 2");
	EXPECT_EQ(fault_command({"wr", {"general-err"}, {{"qpn", 17}, {"nth", 2}}}), "fault wr 17 2 general-err");
	EXPECT_EQ(fault_command({"recv", {"loc-prot-err"}, {{"qpn", 17}}}), "fault recv 17 1 loc-prot-err");
	EXPECT_EQ(fault_command({"clear", {}, {}}), "fault clear all");
	EXPECT_EQ(fault_command({"clear", {"4"}, {}}), "fault clear 4");
}

TEST(Faults, WhatIsMissingOrTooMuchIsNamed)
{
	const auto fails = [](FaultRequest request, const Strings &parts) {
		expect_says(failure_of([&] { fault_command(request); }), Exit::Usage, parts);
	};

	fails({"mesage", {"lose"}, {}}, {"'mesage'", "message", "rnr", "list"});
	fails({"message", {}, {}}, {"action is missing", "message ACTION"});
	fails({"message", {"drop"}, {}}, {"'drop'", "lose", "corrupt"});
	fails({"message", {"lose", "delay"}, {}}, {"'delay' is too much"});
	fails({"message", {"lose"}, {{"nth", 1}, {"every", 1}}}, {"--nth", "--every"});
	fails({"message", {"lose"}, {{"usec", 1}}}, {"--usec"});
	fails({"message", {"delay"}, {}}, {"--usec"});
	fails({"rnr", {}, {}}, {"--qpn is missing"});
	fails({"rnr", {}, {{"qpn", 1}, {"every", 1}}}, {"takes no --every"});
	fails({"verb", {"create-qp"}, {}}, {"errno is missing"});
	fails({"verb", {"destroy-qp", "EIO"}, {}}, {"'destroy-qp'", "create-qp"});
	fails({"verb", {"create-qp", "EWHAT"}, {}}, {"'EWHAT'"});
	fails({"verb", {"create-qp", "134"}, {}}, {"'134'"});
	fails({"wr", {"general-err"}, {}}, {"--qpn is missing"});
	fails({"clear", {"all", "1"}, {}}, {"too much"});
	fails({"clear", {"all"}, {}}, {"'all'"});
}

/* ------------------------------------------------------------------------------------------------------ traces -- */

constexpr const char *kFormat = R"(name: herald_async_event
ID: 1234
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:__data_loc char[] device;	offset:8;	size:4;	signed:0;
	field:__data_loc char[] name;	offset:12;	size:4;	signed:0;
	field:int event;	offset:16;	size:4;	signed:1;
	field:u32 number;	offset:20;	size:4;	signed:0;
	field:int pid;	offset:24;	size:4;	signed:1;
	field:u8 object;	offset:28;	size:1;	signed:0;
	field:bool provoked;	offset:29;	size:1;	signed:0;
	field:u8 verdict;	offset:30;	size:1;	signed:0;

print fmt: "device=%s object=%s cause=%s verdict=%s", __get_str(device), __print_symbolic(REC->object, { 0, "qp" }, { 1, "cq" }, { 2, "srq" }), REC->provoked ? "provoked" : "natural", __print_symbolic(REC->verdict, { 0, "raised" }, { 0x1, "delivered" })
)";

class Record {
public:
	template <typename T> Record &put(size_t offset, T value)
	{
		grow(offset + sizeof(value));
		std::memcpy(bytes_.data() + offset, &value, sizeof(value));
		return *this;
	}
	Record &put_text(size_t field, size_t at, const char *text)
	{
		const size_t length = std::strlen(text) + 1;
		grow(at + length);
		std::memcpy(bytes_.data() + at, text, length);
		return put<uint32_t>(field, static_cast<uint32_t>(length << 16 | at));
	}
	Bytes bytes() const { return bytes_; }

private:
	void grow(size_t size)
	{
		if (bytes_.size() < size)
			bytes_.resize(size);
	}
	std::vector<std::byte> bytes_;
};

Record sample()
{
	Record record;

	record.put<uint16_t>(0, 1234).put<int32_t>(16, 1).put<uint32_t>(20, 17).put<int32_t>(24, 99);
	record.put<uint8_t>(28, 1).put<uint8_t>(29, 1).put<uint8_t>(30, 1);
	return record.put_text(8, 32, "hd0").put_text(12, 36, "cq-err");
}

TEST(Trace, FieldsAreFoundByName)
{
	const EventFormat format = EventFormat::parse(kFormat);
	const Record record = sample();

	EXPECT_EQ(format.id(), 1234);
	EXPECT_TRUE(format.matches(record.bytes()));
	const AsyncEvent event = decode_event(format, record.bytes());
	EXPECT_EQ(event.device, "hd0");
	EXPECT_EQ(event.event, "cq-err");
	EXPECT_EQ(event.object, "cq");
	EXPECT_EQ(event.number, 17);
	EXPECT_EQ(event.cause, "provoked");
	EXPECT_EQ(event.pid, 99);
	EXPECT_EQ(event.verdict, "delivered");
}

TEST(Trace, OrderAndPlaceOfFieldsAreTheKernels)
{
	const EventFormat format = EventFormat::parse("ID: 7\n"
						      "field:unsigned short common_type; offset:0; size:2; signed:0;\n"
						      "field:char cause[8]; offset:10; size:8; signed:0;\n"
						      "field:s64 number; offset:2; size:8; signed:1;\n"
						      "field:__rel_loc char[] dev; offset:18; size:4; signed:0;\n");
	Record record;

	record.put<uint16_t>(0, 7).put<int64_t>(2, -3).put(10, std::array<char, 8>{"natural"});
	/* three bytes behind the field */
	record.put_text(18, 25, "hd1").put<uint32_t>(18, 4U << 16 | 3);
	const AsyncEvent event = decode_event(format, record.bytes());
	EXPECT_EQ(event.device, "hd1");
	EXPECT_EQ(event.number, -3);
	EXPECT_EQ(event.cause, "natural");
	EXPECT_EQ(event.verdict, "");
}

TEST(Trace, AShortRecordHasNoSuchFields)
{
	const EventFormat format = EventFormat::parse(kFormat);
	const Record record = Record().put<uint16_t>(0, 1234).put<uint32_t>(8, 100U << 16 | 5000);

	EXPECT_EQ(format.integer(record.bytes(), "number"), std::nullopt);
	EXPECT_EQ(format.word(record.bytes(), "device"), "");
	EXPECT_EQ(format.word(record.bytes(), "nonsense"), std::nullopt);
}

TEST(Trace, WhatDescribesNoEventIsAFailure)
{
	expect_says(failure_of([] { EventFormat::parse("nonsense"); }), Exit::Failed, {"format"});
	expect_says(failure_of([] { EventFormat::parse("ID: 1\nfield:int common_type;\n"); }), Exit::Failed,
		    {"offset:"});
}

/* A page of a ring buffer, from words of 32 bits behind its header */
std::vector<std::byte> page_of(uint64_t time, const std::vector<uint32_t> &data, uint64_t flags = 0)
{
	std::vector<std::byte> page(4096);
	const uint64_t commit = data.size() * 4 | flags;

	std::memcpy(page.data(), &time, 8);
	std::memcpy(page.data() + 8, &commit, 8);
	std::memcpy(page.data() + 16, data.data(), data.size() * 4);
	return page;
}

constexpr uint32_t head(uint32_t type, uint32_t delta)
{
	return delta << 5 | type;
}

TEST(TracePage, RecordsOfEachKindInOrder)
{
	const auto bytes = page_of(1000, {
						 head(2, 5),
						 11,
						 12, /* two words */
						 head(30, 1),
						 2, /* 2^28 + 1 later */
						 head(0, 3),
						 12,
						 21,
						 22, /* its length counts itself */
						 head(29, 1),
						 8,
						 99, /* discarded, one word */
						 head(31, 70),
						 0, /* an absolute time */
						 head(1, 1),
						 31,
					 });
	const TracePage page = parse_trace_page(bytes);

	ASSERT_EQ(page.records.size(), 3U);
	EXPECT_EQ(page.records[0].time, 1005U);
	EXPECT_EQ(page.records[0].data.size(), 8U);
	EXPECT_EQ(page.records[1].time, 1005U + (1U << 28) + 1 + 3);
	EXPECT_EQ(page.records[1].data.size(), 8U);
	EXPECT_EQ(page.records[1].data[0], std::byte{21});
	EXPECT_EQ(page.records[2].time, 71U);
	EXPECT_EQ(page.records[2].data[0], std::byte{31});
	EXPECT_FALSE(page.lost);
}

TEST(TracePage, LostRecordsAreNoticed)
{
	EXPECT_TRUE(parse_trace_page(page_of(0, {head(1, 0), 1}, 1U << 31)).lost);
}

TEST(TracePage, NonsenseEndsIt)
{
	EXPECT_TRUE(parse_trace_page({}).records.empty());
	EXPECT_TRUE(parse_trace_page(page_of(0, {head(0, 0), 2, 1})).records.empty()) << "shorter than its own length";
	EXPECT_TRUE(parse_trace_page(page_of(0, {head(28, 0), 1})).records.empty()) << "longer than the page";
	EXPECT_TRUE(parse_trace_page(page_of(0, {head(29, 0), 1, head(1, 0), 1})).records.empty()) << "its end";
}

AsyncEvent async_event(const char *verdict)
{
	return {"hd0", "cq-err", "cq", 17, "natural", 9, verdict};
}

TEST(EventLine, SaysWhatHappenedToWhat)
{
	AsyncEvent event = async_event("raised");

	EXPECT_EQ(event_line(event, "app"), "hd0 cq-err cq 17 natural pid 9 (app)");
	event.verdict = "coalesced";
	event.pid = 0;
	EXPECT_EQ(event_line(event, ""), "hd0 cq-err cq 17 natural kernel coalesced");
}

TEST(EventLine, DeliveriesAreForAll)
{
	AsyncEvent event = async_event("delivered");
	WatchOptions options;

	EXPECT_FALSE(wanted(event, options));
	options.all = true;
	EXPECT_TRUE(wanted(event, options));
	options.device = "hd1";
	EXPECT_FALSE(wanted(event, options));
}

/* ---------------------------------------------------------------------------------------------------- messages -- */

TEST(Messages, OfCommandsNameObjectAndRemedy)
{
	const auto explain = [](int error) { return explain_control(error, "hd0", "hold 5", "CQ 5"); };

	expect_says(explain(ENOENT), Exit::NotFound, {"hd0", "no CQ 5", "heraldctl show hd0"});
	expect_says(explain(EPERM), Exit::Denied, {"hd0", "heraldctl allow hd0 on", "provoke=1"});
	expect_says(explain(EOPNOTSUPP), Exit::Unsupported, {"hd0", "hold 5"});
	expect_says(explain(EBUSY), Exit::Busy, {"hd0", "CQ 5", "resume hd0 5 first"});
	expect_says(explain(EINVAL), Exit::Failed, {"hd0", "hold 5"});
	expect_says(explain_control(EINVAL, "hd0", "provoke qp-fatal 7", "QP 7"), Exit::Failed,
		    {"hd0", "qp-fatal 7", "state of QP 7"});
	expect_says(explain(EIO), Exit::Failed, {"hd0", "hold 5", "Input/output error"});
	expect_says(explain_control(ENOENT, "hd0", "fault clear 7", "fault 7"), Exit::NotFound,
		    {"no fault 7", "heraldctl fault hd0 list"});
	expect_says(explain_control(ENOENT, "hd0", "fault rnr 7 1", "QP 7"), Exit::NotFound, {"no QP 7"});
	expect_says(explain_control(ENOSPC, "hd0", "fault rnr 7 1", "QP 7"), Exit::Busy, {"heraldctl fault hd0 clear"});
	expect_says(explain_control(EINVAL, "hd0", "fault recv 7 1 loc-len-err", "QP 7"), Exit::Failed,
		    {"fault recv 7 1 loc-len-err", "QP 7", "docs/faults.md"});
}

ModuleInfo module_info(const char *vermagic, Strings parameters)
{
	return {"/x/herald.ko", "0.1.0", vermagic, {}, std::move(parameters)};
}

TEST(Messages, OfAModuleOfAnotherKernelNameBoth)
{
	const ModuleInfo info = module_info("6.1.0-1-amd64 SMP", {"provoke"});
	const auto explain = [&](int error, Surroundings around) {
		return explain_insert(error, info, {"provoke=x"}, around);
	};
	const Surroundings here{"6.12.0", "none", true};

	expect_says(explain(ENOEXEC, here), Exit::Failed, {"/x/herald.ko", "6.1.0-1-amd64", "6.12.0 is running"});
	expect_says(explain(ENOEXEC, {"6.1.0-1-amd64", "", true}), Exit::Failed, {"another configuration"});
	expect_says(explain(EKEYREJECTED, here), Exit::Denied, {"signature", "/x/herald.ko", "sign it"});
	expect_says(explain(EPERM, {"6", "integrity", true}), Exit::Denied, {"locked down (integrity)"});
	expect_says(explain(EPERM, {"6", "", false}), Exit::Denied, {"be root"});
	expect_says(explain(EINVAL, here), Exit::Failed, {"provoke=x", "dmesg"});
	expect_says(explain(EEXIST, here), Exit::Busy, {"already"});
	expect_says(explain(ENOENT, here), Exit::Failed, {"6.12.0", "dmesg"});
}

TEST(Messages, OfParametersNameThoseThereAre)
{
	const ModuleInfo info = module_info("6", {"provoke"});

	check_parameters(info, {"provoke=1"});
	expect_says(failure_of([&] { check_parameters(info, {"prowoke=1"}); }), Exit::Usage,
		    {"prowoke", "it has provoke"});
	expect_says(failure_of([&] { check_parameters(info, {"provoke"}); }), Exit::Usage,
		    {"'provoke'", "PARAM=VALUE"});
	expect_says(failure_of([] { check_parameters({}, {"a=1"}); }), Exit::Usage, {"it has none"});
}

TEST(Words, OfTheKernel)
{
	EXPECT_EQ(parse_lockdown("none [integrity] confidentiality"), "integrity");
	EXPECT_EQ(parse_lockdown(""), "");
	EXPECT_TRUE(release_at_least("6.12.117+deb13-amd64", 6, 12));
	EXPECT_TRUE(release_at_least("7.2-rc1", 6, 12));
	EXPECT_FALSE(release_at_least("6.1.0-9", 6, 12));
	EXPECT_FALSE(release_at_least("nonsense", 6, 12));
	EXPECT_EQ(number("12x"), std::nullopt);
	EXPECT_EQ(number("0x1f", 16), 31U);
}

TEST(Words, SocketsOfAPort)
{
	constexpr const char *kTable =
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref "
		"pointer drops\n"
		"  64: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4321 2 0 "
		"0\n"
		"  65: 00000000:0044 00000000:12B7 07 00000000:00000000 00:00000000 00000000     0        0 77 2 0 0\n";

	EXPECT_EQ(sockets_on_port(kTable, 4791), (std::vector<unsigned long>{4321}));
	EXPECT_TRUE(sockets_on_port(kTable, 4790).empty());
}

} // namespace
