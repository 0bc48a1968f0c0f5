/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* CQs of random kinds and pairs of connected QPs that complete to them; what lives and dies together. */
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "channel.h"
#include "common.h"
#include "cq.h"
#include "queue.h"

namespace torture {

struct Pair;
class Group;

struct End {
	Pair *pair = nullptr;
	End *peer = nullptr;
	ibv_qp *qp = nullptr;
	Queue sq, rq;
};

struct Pair {
	Group *group = nullptr;
	std::array<End, 2> end;
	Gate gate;
	std::atomic<bool> dying = false; /* errors are expected */

	std::array<Queue *, 4> queues() { return {&end[0].sq, &end[0].rq, &end[1].sq, &end[1].rq}; }
	void init(Group *g);
	void create(Random &random);
	void destroy(Random &random);
	/* By who is in the group: kill both QPs, and make them anew. */
	void kill(Random &random);
	void show() const;

private:
	void choose_cqs(Random &random);
	void create_qp(End &e);
	void close_queues();
	void start();
	void drain();
	void purge(bool reset);
	void end_work(Random &random, bool reset);
};

class Group : public Shown {
public:
	static constexpr int kCqs = 6;
	static constexpr int kPairs = 4;

	Group(int number, std::vector<std::unique_ptr<Channel>> &channels, Random &random);

	/* Destroys all; nothing happens in it any more. */
	void finish(Random &random);
	/* One random thing. */
	void use(Random &random);
	void post(Random &random);
	void poll_all();
	/* One tick of the watchdog. */
	void look();
	void show() const override;

	std::array<CompletionQueue, kCqs> cqs;
	std::array<Pair, kPairs> pairs;

private:
	void create_cqs(Random &random);
	void recreate(Random &random);
	void use_pair(Random &random);
	void use_cq(Random &random);

	int number_;
	std::vector<std::unique_ptr<Channel>> &channels_;
	Gate gate_;
	unsigned closed_ticks_ = 0;
};

/* They are there until the process ends. */
void make_groups(int n, std::vector<std::unique_ptr<Channel>> &channels);
void finish_groups();
void look_at_groups();
/* One random thing; a post, by who has got an event. */
void use_groups(Random &random);
void post_somewhere(Random &random);

} // namespace torture
