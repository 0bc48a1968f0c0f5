/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Torture of a device's completion events by a process: every completion and every event is accounted for, and a stall is
 * a failure.
 *
 *	herald_torture [--dev NAME] [--seconds N] [--seed N] [--threads N] [--patience MS] [--min-arms N]
 *
 * It ends with one line of counts, and status 0; or with what failed, what is known of all queues, and status 1. A seed
 * decides what each thread does, not how the threads meet.
 */
#include <getopt.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "canary.h"
#include "channel.h"
#include "common.h"
#include "group.h"
#include "litmus.h"

namespace torture {

constexpr int kGroups = 3;
constexpr unsigned kWaits = static_cast<unsigned>(Wait::kinds);
/* How long a phase lasts */
constexpr unsigned kStormTicks = 40, kLitmusTicks = 20;
/* beyond the end, for what has not happened; the job (65-torture.sh) allows for it */
constexpr std::chrono::seconds kMoreTime{60};
/* The CQs of the litmus tests */
constexpr std::array<int, 4> kLanes = {32, 1, 8, 32};

/* 0, or the status to end with. */
static int parse(int argc, char **argv)
{
	static const std::array<option, 7> known = {{{"dev", required_argument, nullptr, 0},
						     {"seconds", required_argument, nullptr, 0},
						     {"seed", required_argument, nullptr, 0},
						     {"threads", required_argument, nullptr, 0},
						     {"patience", required_argument, nullptr, 0},
						     {"min-arms", required_argument, nullptr, 0},
						     {nullptr, 0, nullptr, 0}}};
	const std::array<unsigned *, 6> numbers = {nullptr,          &options.seconds,  &options.seed,
						   &options.threads, &options.patience, &options.min_arms};
	int which = 0, c = 0;

	/* there are no other threads yet: NOLINTNEXTLINE(concurrency-mt-unsafe) */
	while ((c = getopt_long(argc, argv, "", known.data(), &which)) == 0) {
		if (which == 0)
			options.dev = optarg;
		else
			*numbers[which] = strtoul(optarg, nullptr, 0);
	}
	if (c == -1 && optind == argc)
		return 0;
	printf("usage: herald_torture [--dev NAME] [--seconds N] [--seed N] [--threads N] [--patience MS] [--min-arms "
	       "N]\n");
	return 2;
}

/* ---------------------------------------------------------------- phases -- */

/* Something of everything, or what did not fail means nothing. */
static bool saw_everything()
{
	const Totals &t = totals;

	return t.arms && t.events && t.completions && t.resizes && t.kills && t.rounds;
}

class Torture {
public:
	Torture();
	void run();
	void finish();

private:
	void work(unsigned stream);
	void watch();
	void next_phase();

	std::vector<std::unique_ptr<Channel>> channels_;
	std::vector<std::unique_ptr<Litmus>> litmus_;
	std::vector<std::thread> workers_;
	Canaries canaries_;
	unsigned ticks_ = 0;
};

void Torture::work(unsigned stream)
{
	Random random(stream);

	while (await_phase(kStorm)) {
		use_groups(random);
		if (random.one_in(256))
			nap(random.below(500));
	}
}

/* Sleeping and waking take far longer than all else in some kernels, so every other test does without. */
static Wait litmus_wait(unsigned i)
{
	return i % 2 ? Wait::spin : static_cast<Wait>((i / 2 + options.seed) % kWaits);
}

Torture::Torture()
{
	prepare_interrupts();
	device.open();
	for (unsigned i = 0; i < kWaits; i++) {
		const auto how = static_cast<Wait>(i);

		/* an edge wakes one, who has to get all */
		channels_.push_back(std::make_unique<Channel>(how, how == Wait::edge || how == Wait::poll ? 1 : 2));
	}
	make_groups(kGroups, channels_);
	for (unsigned i = 0; i < kLanes.size(); i++)
		litmus_.push_back(std::make_unique<Litmus>(i, litmus_wait(i), kLanes[i]));
	for (auto &litmus : litmus_)
		litmus->start();
	for (unsigned i = 0; i < options.threads; i++)
		workers_.emplace_back(&Torture::work, this, 100 + i);
}

void Torture::next_phase()
{
	const int now = phase;

	if (++ticks_ < (now == kStorm ? kStormTicks : kLitmusTicks) || suspicion)
		return;
	ticks_ = 0;
	phase = now < kLitmus + static_cast<int>(litmus_.size()) - 1 ? now + 1 : kStorm;
	phase.notify_all();
}

/* Ticks are the watchdog's own, and count only if every CPU gets somewhere: on a machine that stands still, it does, too. */
void Torture::watch()
{
	suspicion = false;
	if (phase == kStorm)
		look_at_groups();
	else
		litmus_[phase - kLitmus]->look();
}

/* On a busy machine few ticks count in the time that was asked for, so there is more for what has not happened yet. */
void Torture::run()
{
	using Clock = std::chrono::steady_clock;
	const auto end = Clock::now() + std::chrono::seconds(options.seconds);

	while (Clock::now() < end || suspicion || (!saw_everything() && Clock::now() < end + kMoreTime)) {
		std::this_thread::sleep_for(kTick);
		if (!canaries_.sing())
			continue;
		watch();
		next_phase();
	}
}

void Torture::finish()
{
	phase = kStop;
	phase.notify_all();
	for (auto &worker : workers_)
		worker.join();
	for (auto &litmus : litmus_)
		litmus->stop();
	litmus_.clear();
	finish_groups();
	channels_.clear();
	device.close();
}

static void print_totals()
{
	const Totals &t = totals;

	printf("arms %lu (took effect %lu) events %lu completions %lu (flushed %lu) posted %lu resizes %lu moderated "
	       "%lu (refused %lu) kills %lu (purges %lu) cqs %lu litmus rounds %lu seed %u\n",
	       t.calls.load(), t.arms.load(), t.events.load(), t.completions.load(), t.flushed.load(), t.posted.load(),
	       t.resizes.load(), t.moderated.load(), t.unmoderated.load(), t.kills.load(), t.purges.load(),
	       t.cqs.load(), t.rounds.load(), options.seed);
}

static int verdict()
{
	if (!saw_everything())
		fail("something never happened");
	if (totals.calls < options.min_arms)
		fail("%lu arms, and %u were asked for", totals.calls.load(), options.min_arms);
	return 0;
}

} // namespace torture

int main(int argc, char **argv)
{
	using namespace torture;

	setvbuf(stdout, nullptr, _IOLBF, 0);
	if (const int status = parse(argc, argv))
		return status;
	{
		Torture torture;

		torture.run();
		torture.finish();
	}
	print_totals();
	return verdict();
}
