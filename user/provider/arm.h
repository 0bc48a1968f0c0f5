/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a process asks of its CQ: the arm word (herald-abi.h), as the process
 * makes it.  The kernel reads it once for each completion, after publishing it;
 * so when the process arms, every completion but the last one that it sees was
 * decided, and the last one may be about to use up the arm that is replaced.
 * tests/spin/user-cq.pml looks at every interleaving.
 */
#pragma once

#include <algorithm>
#include <cstdint>

#include <rdma/herald-abi.h>

namespace herald {

class Arm {
public:
	/* @seq: the number of the arm before the first */
	explicit Arm(uint32_t seq = 0) noexcept : seq_(seq) {}

	/*
	 * Ask for an event of @kind (HERALD_ARM_SOLICITED or HERALD_ARM_NEXT).
	 * @seen is the producer index, @fired the arm_fired that was read *after*
	 * it: what completions before the last one seen fired is in @fired.
	 *
	 * True if the word has changed and must be stored.
	 */
	bool ask(uint32_t kind, uint32_t seen, uint32_t fired) noexcept
	{
		static_assert(HERALD_ARM_NEXT > HERALD_ARM_SOLICITED);
		const uint32_t next = (seq_ + 1) & HERALD_ARM_SEQ_MASK;

		if (!kind_ || fired == seq_) {
			prev_ = 0;
		} else if (seen == seen_ || next == fired) {
			/*
			 * Nothing has come since the pending arm: it takes over what is
			 * asked for, if that is more.  Nor is there another number than
			 * the last that fired, 2^28 arms ago: then an event that is under
			 * way counts for both.
			 */
			if (kind <= kind_)
				return false;
			kind_ = kind;
			return true;
		} else {
			/* the last one seen may yet use up the pending arm, and the one before it */
			const bool older = prev_ && fired != ((seq_ - 1) & HERALD_ARM_SEQ_MASK);

			prev_ = older ? std::max(prev_, kind_) : kind_;
		}
		seq_ = next;
		kind_ = kind;
		seen_ = seen;
		return true;
	}

	__u64 word() const noexcept { return HERALD_ARM(seen_, seq_, prev_, kind_); }

private:
	uint32_t seen_ = 0;
	uint32_t seq_;
	uint32_t prev_ = 0; /* what the arm before this one asks for, while that may be undecided */
	uint32_t kind_ = 0; /* 0 before the first */
};

} // namespace herald
