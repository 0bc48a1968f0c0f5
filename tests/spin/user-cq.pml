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
 *	no event is raised twice for an arm, and none for a CQE that was there
 *	when a process with no pending arm armed;
 *	the sequence number is at most two ahead of the last that fired.
 *
 * An event answers all calls of arm() up to the moment in which the process can
 * see it in arm_fired: a call that still finds the arm before it pending changes
 * nothing.  So a process that armed, polled the CQE and armed again before the
 * kernel consumed the first arm gets one event, not two; it has to arm again
 * when it got it, as after any event.
 * And a call that turns a pending SOLICITED into NEXT may be answered by the
 * last CQE that was there, solicited or not.
 *
 * Bounds: three CQEs by two producers, solicited or not, ARMS calls of arm() of
 * either kind by one process, one resize.  Numbers do not wrap here.
 */

// run arm: -DN0=2 -DN1=1 -DARMS=3
// run resize: -DN0=2 -DN1=1 -DARMS=2 -DRESIZE
//
// mutant arm-read-early of arm: invalid end state
// mutant no-index of arm: index>=first
// mutant no-chance of arm: ||fire
// mutant weaken of arm: ||fire
// mutant same-seq of arm: ||fire
// mutant fired-unpublished of arm: invalid end state
// mutant fired-kept of arm: index>=first
// mutant arm-lost of resize: ||fire
// mutant fired-lost of resize: invalid end state

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
byte arm_seen[2], arm_seq[2], arm_kind[2];	/* one 64-bit word */

/* the kernel's half of the CQ, under cq->lock */
bool cq_lock;
bit ring;
byte made, fired;

/* the channel */
byte events;

/* what is checked */
byte calls, fires;	/* of arm(); decisions to raise an event */
byte kind_owed;		/* what the arms that have returned ask for */
byte first;		/* CQEs before it were there when the process armed */
byte solicited_mask;
byte done;

/* ------------------------------------------------------------- kernel -- */

/* kernel/notify_table.c: herald_arm_word_state(), and the table's row. */
inline decide()
{
	// kernel/notify_table.c: herald_arm_word_state(): if (HERALD_ARM_SEQ(arm) == fired) return HERALD_DISARMED;
	// kernel/notify_table.c: herald_arm_word_state(): if ((s32)(index - HERALD_ARM_SEEN(arm)) < 0) return HERALD_DISARMED;
	fire = seq != fired && AFTER(index, seen) && (kind == NEXT || (kind == SOLICITED && solicited))
}

active [2] proctype Producer()
{
	byte i, index, seen, seq, kind;
	bool solicited, fire, owed;

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
		d_step { seen = arm_seen[ring]; seq = arm_seq[ring]; kind = arm_kind[ring] };
#endif
		// kernel/cq.c: herald_cq_add(): smp_store_release(&cq->ctl->producer, cq->producer);
		d_step {
			index = made;
			made++;
			producer[ring] = made;
			solicited_mask = solicited_mask | (solicited << index);
			owed = kind_owed == NEXT || (kind_owed == SOLICITED && solicited)
		};
#ifndef MUTANT_ARM_READ_EARLY
		// kernel/cq.c: cq_state(): *arm = READ_ONCE(cq->ctl->arm);
		d_step { seen = arm_seen[ring]; seq = arm_seq[ring]; kind = arm_kind[ring] };
#endif
		d_step {
			// kernel/cq.c: cq_state(): return herald_arm_word_state(*arm, cq->arm_fired, index);
			decide();
#ifndef MUTANT_ARM_READ_EARLY
			assert(!owed || fire);		// an event is lost
#endif
			if
			:: fire ->
				// kernel/cq.c: cq_step(): cq->arm_fired = HERALD_ARM_SEQ(arm);
				// kernel/cq.c: cq_step(): WRITE_ONCE(cq->ctl->arm_fired, cq->arm_fired);
#ifndef MUTANT_FIRED_KEPT
				fired = seq;
#endif
#ifndef MUTANT_FIRED_UNPUBLISHED
				arm_fired[ring] = seq;
#endif
				assert(index >= first);	// for a CQE that was there already
				fires++;
				assert(fires <= calls);	// one too many
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
		d_step { index = 0; seen = 0; seq = 0; kind = 0; fire = false; owed = false; solicited = false; i++ }
	:: else -> break
	od;
	done++
}

/* ------------------------------------------------------------ process -- */

/* user/provider/cq_ring.h: CqRing::arm() */
inline arm(want)
{
	// user/provider/cq_ring.h: arm(): const bool pending = arm_kind_ && load_acquire(ctl->arm_fired) != arm_seq_;
	d_step {
		calls++;
		pending = my_kind && arm_fired[mine] != my_seq;
		// what it had asked for may still be answered
		if
		:: !pending -> first = producer[mine]
		:: else
		fi
	};
	if
	// user/provider/cq_ring.h: arm(): if (pending && arm_kind_ >= kind) return;
#ifdef MUTANT_WEAKEN
	:: pending && my_kind == want ->
#else
	:: pending && my_kind >= want ->
#endif
		// an event that is yet to come is the answer to this call, too
		skip
	:: else ->
		// user/provider/cq_ring.h: arm(): uint32_t seen = load_acquire(ctl->producer);
		my_seen_now = producer[mine];
		// user/provider/cq_ring.h: arm(): if (pending && seen != arm_seen_) seen--;
		// user/provider/cq_ring.h: arm(): arm_seq_ = (arm_seq_ + 1) & HERALD_ARM_SEQ_MASK;
		// user/provider/cq_ring.h: arm(): store_then_fence(ctl->arm,
		d_step {
			if
#ifndef MUTANT_NO_CHANCE
			:: pending && my_seen_now != my_seen -> my_seen_now--
#endif
			:: else
			fi;
#ifndef MUTANT_SAME_SEQ
			my_seq++;
#else
			my_seq = 1;
#endif
			my_kind = want;
			my_seen = my_seen_now;
			arm_seen[mine] = my_seen;
			arm_seq[mine] = my_seq;
			arm_kind[mine] = my_kind;
			// the number may wrap: it is never far ahead
			assert(my_seq - arm_fired[mine] <= 2);
			kind_owed = MAX(kind_owed, want);
			my_seen_now = 0
		}
	fi;
	d_step { wanted = MAX(wanted, want); looked = false; pending = false }
}

/* What the process sleeps for is in the CQ. */
#define UNSEEN	((wanted == NEXT && consumer < made) || (wanted == SOLICITED && (solicited_mask >> consumer)))

active proctype Process()
{
	byte consumer, my_seq, my_kind, my_seen, my_seen_now, wanted;
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
			arm_kind[1] = arm_kind[0];
#endif
			ring = 1
		};
		// user/provider/cq_ring.h: attach(): ctl_.store(ctl, std::memory_order_release);
		mine = 1
#endif
	:: calls == ARMS && !wanted -> break
	od
}
