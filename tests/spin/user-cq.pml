// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A process's CQ: the arm word between the kernel's publication and
 * CqRing::arm(), with a resize in between.  What the ring's memory holds is
 * read and written one word at a time, in program order: tests/litmus shows
 * that the barriers make it so where it matters.  In every reachable state:
 *
 *	no wake-up is lost: a process that has armed, polled until the CQ was
 *	empty, and sleeps, while what it sleeps for is in the CQ and no event is
 *	on its way, is an "invalid end state"; and a CQE that becomes visible
 *	while an arm that matches it has been made, and not consumed, fires;
 *	an event has a call of arm() to justify it: one that matches the CQE, began
 *	before that became visible, and was not answered before.
 *
 * In the run "exact" no CQE becomes visible in the middle of a call of arm(), so
 * that it is clear which came first.  Then the number of events is exactly what
 * the rules owe: one for the first CQE after each arm that matches it, however
 * long the kernel takes to read the arm word, and whatever the process polls and
 * arms meanwhile.
 *
 * Bounds: three CQEs by two producers, solicited or not, ARMS calls of arm() of
 * either kind by one process, one resize.  Numbers do not wrap here.
 */

// run arm: -DN0=2 -DN1=1 -DARMS=3
// run exact: -DN0=2 -DN1=1 -DARMS=3 -DSTRICT
// run resize: -DN0=2 -DN1=1 -DARMS=3 -DRESIZE -DSTRICT
//
// mutant arm-read-early of arm: invalid end state
// mutant fired-first of arm: ||justified
// mutant no-prev of arm: ||fire
// mutant fired-unpublished of exact: assertion violated
// mutant no-index of exact: fires==strict_events
// mutant skip-pending of exact: fires==strict_events
// mutant leave-the-chance of exact: fires==strict_events
// mutant own-number of exact: assertion violated
// mutant prev-stays of exact: assertion violated
// mutant weaken of exact: assertion violated
// mutant same-seq of exact: assertion violated
// mutant fired-kept of exact: assertion violated
// mutant arm-lost of resize: ||fire
// mutant fired-lost of resize: ||justified

#define MAX(a, b)	((a) > (b) -> (a) : (b))

#define SOLICITED	1
#define NEXT		2

#ifdef MUTANT_NO_INDEX
#define AFTER(index, seen)	true
#else
#define AFTER(index, seen)	((index) >= (seen))
#endif

/* what the memory holds: the ring, and the one that replaces it */
byte producer[2], arm_fired[2];
byte arm_seen[2], arm_seq[2], arm_prev[2], arm_kind[2];	/* one 64-bit word */

/* the kernel's half of the CQ, under cq->lock */
bool cq_lock;
bit ring;
byte made, fired;

/* the channel */
byte events;

/* what is checked */
byte calls, fires;	/* of arm(); decisions to raise an event */
bool may_next, may_solicited;	/* there may be a call like that that has begun and was not answered */
byte kind_owed;		/* what the arms that have returned ask for */
byte strict_kind, strict_events;	/* by the rules alone: armed, and owed so far */
bool arming;
byte solicited_mask;
byte done;

/* ------------------------------------------------------------- kernel -- */

/* kernel/notify_table.c: herald_arm_word(), and the table's row. */
inline decide()
{
	// kernel/notify_table.c: herald_arm_word(): if (seq == fired) return armed;
#ifndef MUTANT_PREV_STAYS
	// kernel/notify_table.c: herald_arm_word(): if (before == fired) prev = 0;
	prev = (fired == seq - 1 -> 0 : prev);
#endif
	if
	:: seq == fired -> kind = 0
	// kernel/notify_table.c: herald_arm_word(): armed.state = kind_to_state(kind > prev ? kind : prev);
	:: seq != fired && AFTER(index, seen) -> kind = MAX(prev, kind)
	// kernel/notify_table.c: herald_arm_word(): armed.state = kind_to_state(prev); armed.seq = before;
	:: seq != fired && !AFTER(index, seen) && index + 1 == seen -> kind = prev;
#ifndef MUTANT_OWN_NUMBER
		seq--
#endif
	:: else -> kind = 0
	fi;
	fire = kind == NEXT || (kind == SOLICITED && solicited)
}

active [2] proctype Producer()
{
	byte i, index, seen, seq, prev, kind;
	bool solicited, fire, owed, justified;

	do
	:: i < (_pid -> N1 : N0) ->
		// kernel/cq.c: herald_cq_publish(): spin_lock_irqsave(&cq->lock, flags);
		atomic {
			!cq_lock -> cq_lock = true;
			if
			:: solicited = true
			:: solicited = false
			fi
		};
#ifdef MUTANT_ARM_READ_EARLY
		d_step { seen = arm_seen[ring]; seq = arm_seq[ring]; prev = arm_prev[ring]; kind = arm_kind[ring] };
#endif
		// kernel/cq.c: herald_cq_add(): smp_store_release(&cq->ctl->producer, cq->producer);
#ifdef STRICT
		atomic { !arming ->
			if
			:: strict_kind == NEXT || (strict_kind == SOLICITED && solicited) -> strict_kind = 0; strict_events++
			:: else
			fi;
#else
		d_step {
#endif
			index = made;
			made++;
			producer[ring] = made;
			solicited_mask = solicited_mask | (solicited << index);
			owed = kind_owed == NEXT || (kind_owed == SOLICITED && solicited);
			justified = may_next || (may_solicited && solicited);
			// a call that is under way may count as later
			may_next = may_next && arming;
			may_solicited = may_solicited && (arming || !solicited)
		};
#ifndef MUTANT_ARM_READ_EARLY
		// kernel/cq.c: cq_armed(): arm = READ_ONCE(cq->ctl->arm);
		d_step { seen = arm_seen[ring]; seq = arm_seq[ring]; prev = arm_prev[ring]; kind = arm_kind[ring] };
#endif
		d_step {
			// kernel/cq.c: cq_armed(): return herald_arm_word(arm, cq->arm_fired, index);
			decide();
#ifndef MUTANT_ARM_READ_EARLY
			assert(!owed || fire);		// an event is lost
			assert(!fire || justified);	// one too many
#endif
			if
			:: fire ->
				// kernel/cq.c: cq_step(): cq->arm_fired = armed.seq;
				// kernel/cq.c: cq_step(): WRITE_ONCE(cq->ctl->arm_fired, cq->arm_fired);
#ifndef MUTANT_FIRED_KEPT
				fired = seq;
#endif
#ifndef MUTANT_FIRED_UNPUBLISHED
				arm_fired[ring] = seq;
#endif
				fires++;
				kind_owed = 0
			:: else
			fi
		};
		// kernel/cq.c: herald_cq_publish(): spin_unlock_irqrestore(&cq->lock, flags);
		cq_lock = false;
		if
		:: fire -> events++
		:: else
		fi;
		d_step { index = 0; seen = 0; seq = 0; prev = 0; kind = 0; fire = false; owed = false; justified = false; solicited = false; i++ }
	:: else -> break
	od;
	done++
}

/* ------------------------------------------------------------ process -- */

/*
 * user/provider/cq_ring.h: CqRing::arm().  First seen, then fired: CQEs before
 * the last one seen are decided, and what they fired is visible.
 */
inline arm(want)
{
	d_step {
		arming = true;
		strict_kind = MAX(strict_kind, want);
		may_next = may_next || want == NEXT;
		may_solicited = may_solicited || want == SOLICITED;
		calls++;
#ifdef MUTANT_FIRED_FIRST
		now_fired = arm_fired[mine]
#else
		// user/provider/cq_ring.h: arm(): const uint32_t seen = load_acquire(ctl->producer);
		now_seen = producer[mine]
#endif
	};
	d_step {
#ifdef MUTANT_FIRED_FIRST
		now_seen = producer[mine];
#else
		// user/provider/cq_ring.h: arm(): const uint32_t fired = load_acquire(ctl->arm_fired);
		now_fired = arm_fired[mine];
#endif
		pending = my_kind && now_fired != my_seq
	};
	if
#ifdef MUTANT_SKIP_PENDING
	:: pending && my_kind >= want -> skip
#else
	// user/provider/arm.h: ask(): if (!kind_ || fired == seq_) { prev_ = 0;
	// user/provider/arm.h: ask(): else if (seen == seen_ || next == fired) {
	// user/provider/arm.h: ask(): if (kind <= kind_) return false;
#ifdef MUTANT_WEAKEN
	:: pending && now_seen == my_seen && my_kind == want -> skip
#else
	:: pending && now_seen == my_seen && my_kind >= want -> skip
#endif
#endif
	:: else ->
		d_step {
			if
			:: !pending ->
				my_prev = 0;
				my_seq++;
				my_kind = want
			// user/provider/arm.h: ask(): kind_ = kind; return true;
			:: pending && now_seen == my_seen ->
#ifdef MUTANT_WEAKEN
				my_kind = want
#else
				my_kind = MAX(my_kind, want)
#endif
			:: pending && now_seen != my_seen ->
#ifdef MUTANT_LEAVE_THE_CHANCE
				now_seen--;
#elif !defined(MUTANT_NO_PREV)
				// user/provider/arm.h: ask(): const bool older = prev_ && fired != ((seq_ - 1) & HERALD_ARM_SEQ_MASK);
				// user/provider/arm.h: ask(): prev_ = older ? std::max(prev_, kind_) : kind_;
				my_prev = (my_prev && now_fired != my_seq - 1 -> MAX(my_prev, my_kind) : my_kind);
#endif
#ifndef MUTANT_SAME_SEQ
				// user/provider/arm.h: ask(): seq_ = next; kind_ = kind; seen_ = seen;
				my_seq++;
#endif
				my_kind = want
			fi;
			my_seen = now_seen;
			// user/provider/cq_ring.h: arm(): store_then_fence(ctl->arm, arm_.word());
			arm_seen[mine] = my_seen;
			arm_seq[mine] = my_seq;
			arm_prev[mine] = my_prev;
			arm_kind[mine] = my_kind;
			// a CQE that came in the middle of the call may be the answer to it
			kind_owed = (my_seq == fired -> kind_owed : MAX(kind_owed, want))
		}
	fi;
	d_step { wanted = MAX(wanted, want); looked = false; pending = false; now_fired = 0; now_seen = 0; arming = false }
}

/* What the process sleeps for is in the CQ. */
#define UNSEEN	((wanted == NEXT && consumer < made) || (wanted == SOLICITED && (solicited_mask >> consumer)))

active proctype Process()
{
	byte consumer, my_seq, my_prev, my_kind, my_seen, now_seen, now_fired, wanted;
	bool pending, looked;
	bit mine;

	do
	:: calls < ARMS -> arm(NEXT)
	:: calls < ARMS -> arm(SOLICITED)
	// poll: user/provider/cq_ring.h, consume()
	:: d_step {
		if
		:: consumer < producer[mine] -> consumer++
		:: else -> looked = true
		fi }
	// sleep, having armed and polled until nothing was there
	:: wanted && looked ->
		if
		:: atomic { events -> events--; wanted = 0 }
		:: done == 2 && !events && !UNSEEN -> break
		fi
#ifdef RESIZE
	:: mine == 0 ->
		// kernel/cq_resize.c: cq_switch(): ring->ctl->producer = cq->producer;
		// kernel/cq_resize.c: cq_switch(): ring->ctl->arm_fired = cq->arm_fired;
		// kernel/cq_resize.c: cq_switch(): ring->ctl->arm = READ_ONCE(cq->ctl->arm);
		atomic {
			!cq_lock ->
			producer[1] = made;
#ifndef MUTANT_FIRED_LOST
			arm_fired[1] = fired;
#endif
#ifndef MUTANT_ARM_LOST
			arm_seen[1] = arm_seen[0];
			arm_seq[1] = arm_seq[0];
			arm_prev[1] = arm_prev[0];
			arm_kind[1] = arm_kind[0];
#endif
			ring = 1
		};
		// user/provider/cq_ring.h: attach(): ctl_.store(ctl, std::memory_order_release);
		mine = 1
#endif
	:: calls == ARMS && !wanted -> break
	od
#ifdef STRICT
	;
	done == 2;
	assert(fires == strict_events)
#endif
}
