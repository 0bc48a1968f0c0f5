// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Faults on purpose: what is armed, and whether it strikes.
 *
 * Not the kernel's struct fault_attr: that is there only if FAULT_INJECTION is
 * configured, which kernels of distributions are not, and it draws from the
 * kernel's own entropy, so that nobody can have the same faults twice.
 */
#include <linux/errno.h>
#include <linux/slab.h>

#include "device.h"
#include "fault.h"
#include "qp.h"

static bool is_over(const struct herald_fault *f)
{
	return !f->left;
}

static void update_armed(struct herald_faults *faults)
{
	struct herald_fault *f;
	u32 armed = 0;

	lockdep_assert_held(&faults->lock);
	list_for_each_entry(f, &faults->list, node)
		if (!is_over(f))
			armed |= BIT(f->site);
	WRITE_ONCE(faults->armed, armed);
}

/* ------------------------------------------------------------- striking -- */

/* Its site asks once more: is it its turn? */
static bool its_turn(struct herald_fault *f)
{
	f->seen++;
	switch (f->trigger) {
	case HERALD_FAULT_EVERY:
		return f->seen % f->number == 0;
	case HERALD_FAULT_PERMILLE:
		return prandom_u32_state(&f->chance) % 1000 < f->number;
	default:
		return f->seen >= f->number;
	}
}

/*
 * The first that strikes, in the order of arming; those behind it do not see
 * this time.  A copy, or false.
 */
static bool strikes(struct herald_faults *faults, enum herald_fault_site site, u32 qpn,
		    struct herald_fault *copy)
{
	struct herald_dev *dev = container_of(faults, struct herald_dev, faults);
	struct herald_fault *f;
	unsigned long flags;
	bool struck = false;

	spin_lock_irqsave(&faults->lock, flags);
	list_for_each_entry(f, &faults->list, node) {
		if (f->site != site || is_over(f) || (f->qpn && f->qpn != qpn) || !its_turn(f))
			continue;
		f->struck++;
		if (f->left != HERALD_FAULT_NO_END)
			f->left--;
		*copy = *f;
		struck = true;
		break;
	}
	if (struck && !copy->left)
		update_armed(faults);
	spin_unlock_irqrestore(&faults->lock, flags);
	if (struck)
		herald_count(dev, HERALD_CTR_faults_struck);
	return struck;
}

#define MAX_GSI_USEC	(100 * USEC_PER_MSEC)

enum herald_fate herald_fault_message(struct herald_qp *qp, u32 *usec)
{
	struct herald_fault f;

	if (!strikes(&qp->dev->faults, HERALD_FAULT_MESSAGE, qp->qpn, &f))
		return HERALD_FATE_PASS;
	*usec = f.value;
	/* a device that goes waits for the core's MADs, one after the other */
	if (qp->type == IB_QPT_GSI)
		*usec = min_t(u32, *usec, MAX_GSI_USEC);
	return f.fate;
}

bool herald_fault_rnr(struct herald_qp *qp)
{
	struct herald_fault f;

	return strikes(&qp->dev->faults, HERALD_FAULT_RNR, qp->qpn, &f);
}

u8 herald_fault_wr(struct herald_qp *qp)
{
	struct herald_fault f;

	return strikes(&qp->dev->faults, HERALD_FAULT_WR, qp->qpn, &f) ? f.value : 0;
}

u8 herald_fault_recv(struct herald_qp *qp)
{
	struct herald_fault f;

	return strikes(&qp->dev->faults, HERALD_FAULT_RECV, qp->qpn, &f) ? f.value : 0;
}

int herald_fault_verb_strikes(struct herald_faults *faults, enum herald_fault_site verb)
{
	struct herald_fault f;

	return strikes(faults, verb, 0, &f) ? -(int)f.value : 0;
}

/* Under the lock, so that the word says what @armed says last. */
void herald_fault_ask(struct herald_faults *faults, enum herald_fault_site site, u32 *word)
{
	spin_lock_irq(&faults->lock);
	WRITE_ONCE(*word, !!(faults->armed & BIT(site)));
	spin_unlock_irq(&faults->lock);
}

/* --------------------------------------------------------------- arming -- */

/* One that is over, the oldest, is forgotten.  False: there is none. */
static bool make_room(struct herald_faults *faults)
{
	struct herald_fault *f;

	if (faults->count < HERALD_MAX_FAULTS)
		return true;
	list_for_each_entry(f, &faults->list, node) {
		if (!is_over(f))
			continue;
		list_del(&f->node);
		kfree(f);
		faults->count--;
		return true;
	}
	return false;
}

int herald_fault_arm(struct herald_dev *dev, const struct herald_fault *want)
{
	struct herald_faults *faults = &dev->faults;
	struct herald_fault *f = kmemdup(want, sizeof(*want), GFP_KERNEL);
	bool room;

	if (!f)
		return -ENOMEM;
	f->seen = 0;
	f->struck = 0;
	prandom_seed_state(&f->chance, f->seed);

	spin_lock_irq(&faults->lock);
	room = make_room(faults);
	if (room) {
		f->id = ++faults->last_id;
		list_add_tail(&f->node, &faults->list);
		faults->count++;
		update_armed(faults);
	}
	spin_unlock_irq(&faults->lock);
	if (!room)
		kfree(f);
	return room ? 0 : -ENOSPC;
}

/* All with this number, or of this QP, or all: 0 stands for any. */
static unsigned int forget(struct herald_faults *faults, u32 id, u32 qpn)
{
	struct herald_fault *f, *next;
	unsigned int before;

	spin_lock_irq(&faults->lock);
	before = faults->count;
	list_for_each_entry_safe(f, next, &faults->list, node) {
		if ((id && f->id != id) || (qpn && f->qpn != qpn))
			continue;
		list_del(&f->node);
		kfree(f);
		faults->count--;
	}
	before -= faults->count;
	update_armed(faults);
	spin_unlock_irq(&faults->lock);
	return before;
}

int herald_fault_disarm(struct herald_dev *dev, u32 id)
{
	return forget(&dev->faults, id, 0) || !id ? 0 : -ENOENT;
}

void herald_fault_forget_qp(struct herald_qp *qp)
{
	if (READ_ONCE(qp->dev->faults.count))
		forget(&qp->dev->faults, 0, qp->qpn);
}

void herald_faults_each(struct herald_dev *dev,
			void (*show)(const struct herald_fault *fault, void *arg), void *arg)
{
	struct herald_faults *faults = &dev->faults;
	struct herald_fault *f;

	spin_lock_irq(&faults->lock);
	list_for_each_entry(f, &faults->list, node)
		show(f, arg);
	spin_unlock_irq(&faults->lock);
}

/* ----------------------------------------------------------------- life -- */

void herald_faults_init(struct herald_dev *dev)
{
	spin_lock_init(&dev->faults.lock);
	INIT_LIST_HEAD(&dev->faults.list);
}

void herald_faults_exit(struct herald_dev *dev)
{
	forget(&dev->faults, 0, 0);
}
