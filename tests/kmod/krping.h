/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two connected RC QPs of one device, used as storage and file system drivers
 * use them: ib_cqe callbacks, ib_dma mappings, fast registration, drain.
 */
#ifndef HERALD_KRPING_H
#define HERALD_KRPING_H

#include <linux/completion.h>
#include <linux/device.h>
#include <rdma/ib_verbs.h>

#define KRPING_BUF	(64 * 1024)
#define KRPING_DEPTH	128

/* How completions reach the consumer */
enum krping_poll {
	KRPING_DIRECT,		/* ib_alloc_cq: the waiter polls */
	KRPING_SOFTIRQ,
	KRPING_WORKQUEUE,
	KRPING_RAW,		/* ib_create_cq: an own handler polls and arms */
	KRPING_POLLS
};

extern const char *const krping_poll_names[KRPING_POLLS];

struct krping_end {
	struct ib_qp *qp;
	struct ib_mr *mr;	/* fast registration */
	void *buf;
	u64 dma;
	struct scatterlist sg;
};

struct krping_rig {
	struct ib_device *dev;
	enum krping_poll poll;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_cq *peer_cq;	/* that of second ends, if it is not the same */
	struct krping_end end[2];
	atomic_t inside;	/* KRPING_RAW: handlers that run now */
	atomic_t overlaps;	/* ... and how often there were two */
	atomic_t handled;	/* ... and how often it ran at all */
};

/* One work request that somebody waits for */
struct krping_wait {
	struct ib_cqe cqe;
	struct completion done;
	struct ib_wc wc;
	atomic_t times;		/* it has completed */
};

int krping_rig_init(struct krping_rig *rig, struct ib_device *dev, enum krping_poll poll);
void krping_rig_exit(struct krping_rig *rig);

/* A CQ whose handler polls and arms, as the rig's is with KRPING_RAW. */
struct ib_cq *krping_raw_cq(struct krping_rig *rig);

/* One more pair of QPs on the rig's CQs. */
int krping_connect(struct krping_rig *rig, struct krping_end end[2]);
/* Connects them anew, after they were drained. */
int krping_reconnect(struct krping_rig *rig, struct krping_end end[2]);
void krping_disconnect(struct krping_rig *rig, struct krping_end end[2]);

void krping_wait_init(struct krping_wait *wait);
/* 0, or -ETIMEDOUT; the status is in wait->wc. */
int krping_wait(struct krping_rig *rig, struct krping_wait *wait);
/* The same, and the status must be success. */
int krping_wait_ok(struct krping_rig *rig, struct krping_wait *wait);

int krping_post_recv(struct krping_rig *rig, struct krping_end *end, u32 off, u32 len,
		     struct krping_wait *wait);
/* SEND, or SEND_WITH_INV if @inv is not 0 */
int krping_post_send(struct krping_rig *rig, struct krping_end *end, u32 off, u32 len, u32 inv,
		     struct krping_wait *wait);
int krping_post_rdma(struct krping_rig *rig, struct krping_end *end, enum ib_wr_opcode opcode,
		     u32 off, u32 len, u64 remote, u32 rkey, struct krping_wait *wait);
/* Registers all of the end's buffer; the key is end->mr->rkey. */
int krping_post_reg(struct krping_end *end, struct krping_wait *wait);
int krping_post_local_inv(struct krping_end *end, u32 rkey, struct krping_wait *wait);

/* The tests: 0 or a negative errno; a message says what was wrong. */
int krping_test_transfer(struct krping_rig *rig);
int krping_test_chains(struct krping_rig *rig);
int krping_test_many_chains(struct krping_rig *rig);
int krping_test_stale_key(struct krping_rig *rig);
int krping_test_drain(struct krping_rig *rig);
int krping_test_bad_wr(struct krping_rig *rig);
int krping_test_faults(struct krping_rig *rig);

int krping_test_missed_events(struct ib_device *dev);
int krping_test_notify_flags(struct ib_device *dev);
int krping_test_solicited(struct ib_device *dev);
int krping_test_one_handler(struct ib_device *dev);
int krping_test_feeding(struct ib_device *dev);
int krping_test_vectors(struct ib_device *dev);
int krping_test_moderation(struct ib_device *dev);
int krping_test_call_chain(struct ib_device *dev);
int krping_test_free_polled(struct ib_device *dev);
int krping_test_event_call_chain(struct ib_device *dev);
int krping_test_event_destroy(struct ib_device *dev);
int krping_test_event_reset(struct ib_device *dev);

#define krping_fail(fmt, ...) \
	({									\
		pr_info("herald_krping: # %s:%d: " fmt "\n", __func__, __LINE__,	\
			##__VA_ARGS__);						\
		-EINVAL;							\
	})

#define KRPING_EXPECT(cond) \
	do {							\
		if (!(cond))					\
			return krping_fail("not so: %s", #cond);	\
	} while (0)

#define KRPING_DO(call) \
	do {						\
		int _rc = (call);			\
							\
		if (_rc) {				\
			krping_fail("%s: %d", #call, _rc);	\
			return _rc;			\
		}					\
	} while (0)

#endif /* HERALD_KRPING_H */
