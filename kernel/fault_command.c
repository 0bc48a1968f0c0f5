// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* "fault ...", a command of a device's control file; and the file that lists what is armed. */
#include <linux/errno.h>
#include <linux/kstrtox.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

#include "cq.h"
#include "cq_table.h"
#include "device.h"
#include "fault.h"
#include "fault_command.h"
#include "qp.h"
#include "srq.h"

#define MAX_NUMBER	1000000000u
#define MAX_USEC	(10 * USEC_PER_SEC)
#define MAX_QPN		0xffffffu
#define MAX_FAULT_ERRNO	133u	/* EHWPOISON: what follows is not for user space */

/* --------------------------------------------------------------- names -- */

struct name {
	const char *name;
	u32 value;
};

static const struct name fates[] = {
	{ "lose", HERALD_FATE_LOSE },
	{ "delay", HERALD_FATE_DELAY },
	{ "duplicate", HERALD_FATE_DUPLICATE },
	{ "reorder", HERALD_FATE_REORDER },
	{ "corrupt", HERALD_FATE_CORRUPT },
};

static const struct name verbs[] = {
	{ "create-qp", HERALD_FAULT_CREATE_QP },
	{ "create-cq", HERALD_FAULT_CREATE_CQ },
	{ "create-srq", HERALD_FAULT_CREATE_SRQ },
	{ "create-ah", HERALD_FAULT_CREATE_AH },
	{ "alloc-pd", HERALD_FAULT_ALLOC_PD },
	{ "reg-mr", HERALD_FAULT_REG_MR },
	{ "modify-qp", HERALD_FAULT_MODIFY_QP },
	{ "resize-cq", HERALD_FAULT_RESIZE_CQ },
	{ "post-send", HERALD_FAULT_POST_SEND },
	{ "post-recv", HERALD_FAULT_POST_RECV },
	{ "post-srq-recv", HERALD_FAULT_POST_SRQ_RECV },
	{ "req-notify", HERALD_FAULT_REQ_NOTIFY },
};

/* Those of a completion in error; a flush is no error of the WR's own. */
static const struct name statuses[] = {
	{ "loc-len-err", IB_WC_LOC_LEN_ERR },
	{ "loc-qp-op-err", IB_WC_LOC_QP_OP_ERR },
	{ "loc-eec-op-err", IB_WC_LOC_EEC_OP_ERR },
	{ "loc-prot-err", IB_WC_LOC_PROT_ERR },
	{ "mw-bind-err", IB_WC_MW_BIND_ERR },
	{ "bad-resp-err", IB_WC_BAD_RESP_ERR },
	{ "loc-access-err", IB_WC_LOC_ACCESS_ERR },
	{ "rem-inv-req-err", IB_WC_REM_INV_REQ_ERR },
	{ "rem-access-err", IB_WC_REM_ACCESS_ERR },
	{ "rem-op-err", IB_WC_REM_OP_ERR },
	{ "retry-exc-err", IB_WC_RETRY_EXC_ERR },
	{ "rnr-retry-exc-err", IB_WC_RNR_RETRY_EXC_ERR },
	{ "loc-rdd-viol-err", IB_WC_LOC_RDD_VIOL_ERR },
	{ "rem-inv-rd-req-err", IB_WC_REM_INV_RD_REQ_ERR },
	{ "rem-abort-err", IB_WC_REM_ABORT_ERR },
	{ "inv-eecn-err", IB_WC_INV_EECN_ERR },
	{ "inv-eec-state-err", IB_WC_INV_EEC_STATE_ERR },
	{ "fatal-err", IB_WC_FATAL_ERR },
	{ "resp-timeout-err", IB_WC_RESP_TIMEOUT_ERR },
	{ "general-err", IB_WC_GENERAL_ERR },
};

/* Those that a responder completes a receive WR with. */
static const struct name recv_statuses[] = {
	{ "loc-len-err", IB_WC_LOC_LEN_ERR },
	{ "loc-prot-err", IB_WC_LOC_PROT_ERR },
	{ "loc-access-err", IB_WC_LOC_ACCESS_ERR },
	{ "rem-inv-req-err", IB_WC_REM_INV_REQ_ERR },
};

#define ERRNO(name)	{ #name, name }

static const struct name errnos[] = {
	ERRNO(EPERM), ERRNO(ENOENT), ERRNO(EINTR), ERRNO(EIO), ERRNO(ENXIO), ERRNO(EAGAIN),
	ERRNO(ENOMEM), ERRNO(EACCES), ERRNO(EFAULT), ERRNO(EBUSY), ERRNO(EEXIST), ERRNO(ENODEV),
	ERRNO(EINVAL), ERRNO(ENFILE), ERRNO(EMFILE), ERRNO(ENOSPC), ERRNO(ERANGE),
	ERRNO(ENODATA), ERRNO(EPROTO), ERRNO(EOVERFLOW), ERRNO(EMSGSIZE), ERRNO(EOPNOTSUPP),
	ERRNO(EADDRNOTAVAIL), ERRNO(ENETDOWN), ERRNO(ENETUNREACH), ERRNO(ECONNRESET),
	ERRNO(ENOBUFS), ERRNO(ETIMEDOUT), ERRNO(ECONNREFUSED), ERRNO(EHOSTUNREACH),
	ERRNO(EREMOTEIO),
};

#undef ERRNO

/* The value of a name, or 0. */
static u32 value_of(const struct name *names, size_t n, const char *name)
{
	size_t i;

	for (i = 0; name && i < n; i++)
		if (!strcmp(names[i].name, name))
			return names[i].value;
	return 0;
}

static const char *name_of(const struct name *names, size_t n, u32 value)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (names[i].value == value)
			return names[i].name;
	return "?";
}

#define VALUE_OF(names, name)	value_of(names, ARRAY_SIZE(names), name)
#define NAME_OF(names, value)	name_of(names, ARRAY_SIZE(names), value)

/* ---------------------------------------------------------------- words -- */

static bool number(const char *word, u64 min, u64 max, u64 *value)
{
	return word && !kstrtou64(word, 10, value) && *value >= min && *value <= max;
}

static bool number32(const char *word, u64 max, u32 *value)
{
	u64 n;

	if (!number(word, 1, max, &n))
		return false;
	*value = n;
	return true;
}

static bool take_number(char **line, u64 max, u32 *value)
{
	return number32(strsep(line, " "), max, value);
}

enum option_bit {
	OPTION_WHEN	= 1 << 0,	/* nth, every, permille */
	OPTION_TIMES	= 1 << 1,
	OPTION_SEED	= 1 << 2,
	OPTION_QPN	= 1 << 3,
	OPTION_USEC	= 1 << 4,
};

static bool take_trigger(struct herald_fault *f, int trigger, const char *word)
{
	f->trigger = trigger;
	return number32(word, trigger == HERALD_FAULT_PERMILLE ? 1000 : MAX_NUMBER, &f->number);
}

/* One option, NAME and a word: its bit, or 0 if it is not understood. */
static unsigned int take_option(struct herald_fault *f, const char *name, const char *word)
{
	bool good = false;
	unsigned int bit;

	if (!strcmp(name, "nth")) {
		bit = OPTION_WHEN;
		good = take_trigger(f, HERALD_FAULT_NTH, word);
	} else if (!strcmp(name, "every")) {
		bit = OPTION_WHEN;
		good = take_trigger(f, HERALD_FAULT_EVERY, word);
	} else if (!strcmp(name, "permille")) {
		bit = OPTION_WHEN;
		good = take_trigger(f, HERALD_FAULT_PERMILLE, word);
	} else if (!strcmp(name, "times")) {
		bit = OPTION_TIMES;
		good = number(word, 1, MAX_NUMBER, &f->left);
	} else if (!strcmp(name, "seed")) {
		bit = OPTION_SEED;
		good = number(word, 0, U64_MAX, &f->seed);
	} else if (!strcmp(name, "qpn")) {
		bit = OPTION_QPN;
		good = number32(word, MAX_QPN, &f->qpn);
	} else if (!strcmp(name, "usec")) {
		bit = OPTION_USEC;
		good = number32(word, MAX_USEC, &f->value);
	}
	return good ? bit : 0;
}

/* All that is left of the line; each option once, and those of @needed. */
static bool take_options(struct herald_fault *f, char *line, unsigned int allowed,
			 unsigned int needed)
{
	unsigned int bit, had = 0;

	while (line) {
		char *name = strsep(&line, " ");

		bit = take_option(f, name, strsep(&line, " "));
		if (!bit || !(bit & allowed) || (bit & had))
			return false;
		had |= bit;
	}
	/* without an end of its own, what strikes now and then goes on */
	if (!(had & OPTION_TIMES) && f->trigger != HERALD_FAULT_NTH)
		f->left = HERALD_FAULT_NO_END;
	return (had & needed) == needed;
}

/* ----------------------------------------------------------- the kinds -- */

/* message FATE [OPTION]... */
static bool parse_message(struct herald_fault *f, char *line)
{
	unsigned int allowed = OPTION_WHEN | OPTION_TIMES | OPTION_SEED | OPTION_QPN;
	unsigned int needed = 0;

	f->site = HERALD_FAULT_MESSAGE;
	f->fate = VALUE_OF(fates, strsep(&line, " "));
	if (f->fate == HERALD_FATE_DELAY)
		needed = OPTION_USEC;
	return f->fate && take_options(f, line, allowed | needed, needed);
}

/* rnr QPN N: the next N requests */
static bool parse_rnr(struct herald_fault *f, char *line)
{
	u32 times = 0;

	f->site = HERALD_FAULT_RNR;
	if (!take_number(&line, MAX_QPN, &f->qpn) || !take_number(&line, MAX_NUMBER, &times))
		return false;
	f->left = times;
	return !line;
}

/* verb VERB N ERRNO [times N] */
static bool parse_verb(struct herald_fault *f, char *line)
{
	const char *word;

	f->site = VALUE_OF(verbs, strsep(&line, " "));
	if (!f->site || !take_number(&line, MAX_NUMBER, &f->number))
		return false;
	word = strsep(&line, " ");
	f->value = VALUE_OF(errnos, word);
	if (!f->value && !number32(word, MAX_FAULT_ERRNO, &f->value))
		return false;
	/* the core and libibverbs would take these for a command that they do not have */
	if (f->value == ENOTTY || f->value == EPROTONOSUPPORT)
		return false;
	return take_options(f, line, OPTION_TIMES, 0);
}

/* QPN N STATUS */
static bool parse_status(struct herald_fault *f, char *line, const struct name *names, size_t n)
{
	if (!take_number(&line, MAX_QPN, &f->qpn) || !take_number(&line, MAX_NUMBER, &f->number))
		return false;
	f->value = value_of(names, n, strsep(&line, " "));
	return f->value && !line;
}

static bool parse_wr(struct herald_fault *f, char *line)
{
	f->site = HERALD_FAULT_WR;
	return parse_status(f, line, statuses, ARRAY_SIZE(statuses));
}

static bool parse_recv(struct herald_fault *f, char *line)
{
	f->site = HERALD_FAULT_RECV;
	return parse_status(f, line, recv_statuses, ARRAY_SIZE(recv_statuses));
}

static const struct kind {
	const char *name;
	bool (*parse)(struct herald_fault *f, char *line);
} kinds[] = {
	{ "message", parse_message },
	{ "rnr", parse_rnr },
	{ "verb", parse_verb },
	{ "wr", parse_wr },
	{ "recv", parse_recv },
};

/* -------------------------------------------------------------- the rings -- */

/*
 * A process posts and arms by stores that nobody sees: while its verb may fail,
 * it is asked to ask (herald-abi.h).  Who makes a ring looks for himself.
 */
static int ask_qp(struct herald_qp *qp, void *arg)
{
	herald_qp_ask(qp);
	return 0;
}

static int ask_srq(struct herald_srq *srq, void *arg)
{
	herald_srq_ask(srq);
	return 0;
}

static int ask_cq(struct herald_cq *cq, void *arg)
{
	herald_cq_ask(cq);
	return 0;
}

static void ask_rings(struct herald_dev *dev)
{
	smp_mb();	/* pairs with the one in check_fatal() */
	herald_qps_each(dev, ask_qp, NULL);
	herald_srqs_each(dev, ask_srq, NULL);
	herald_cqs_each(dev, ask_cq, NULL);
}

/* ------------------------------------------------------------- commands -- */

/* Is it something that can happen to a QP of this type? */
static bool fits(const struct herald_fault *f, const struct herald_qp *qp)
{
	/* who is told nothing drops what it cannot take: only its own memory stops it */
	if (f->site == HERALD_FAULT_RECV)
		return qp->type == IB_QPT_RC || f->value == IB_WC_LOC_PROT_ERR;
	return true;
}

static int arm(struct herald_dev *dev, const struct herald_fault *f)
{
	struct herald_qp *qp;
	int ret = -ENOENT;

	if (!f->qpn)
		return herald_fault_arm(dev, f);
	/* a QP that goes away forgets what was armed for it when nobody holds it any more */
	qp = f->qpn == 1 ? herald_qp_find_gsi(dev) : herald_qp_find(f->qpn);
	if (!qp)
		return ret;
	if (qp->dev == dev)
		ret = fits(f, qp) ? herald_fault_arm(dev, f) : -EINVAL;
	herald_qp_put(qp);
	return ret;
}

static int run_clear(struct herald_dev *dev, char *line)
{
	u32 id = 0;

	if (line && strcmp(line, "all") && !number32(line, U32_MAX, &id))
		return -EINVAL;
	return herald_fault_disarm(dev, id);
}

int herald_fault_command(struct herald_dev *dev, char *line)
{
	struct herald_fault f = { .trigger = HERALD_FAULT_NTH, .number = 1, .left = 1 };
	const char *name = strsep(&line, " ");
	bool known = false;
	size_t i;
	int ret;

	if (!strcmp(name, "clear"))
		return run_clear(dev, line);
	for (i = 0; line && i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(name, kinds[i].name))
			known = kinds[i].parse(&f, line);
	if (!known)
		return -EINVAL;
	ret = arm(dev, &f);
	if (!ret && f.site >= HERALD_FAULT_POST_SEND)
		ask_rings(dev);
	return ret;
}

/* ----------------------------------------------------------------- list -- */

/* What happens, and its number */
static void show_effect(struct seq_file *m, const struct herald_fault *f)
{
	switch (f->site) {
	case HERALD_FAULT_MESSAGE:
		seq_printf(m, "message %s", NAME_OF(fates, f->fate));
		if (f->fate == HERALD_FATE_DELAY)
			seq_printf(m, " %u", f->value);
		else
			seq_puts(m, " -");
		break;
	case HERALD_FAULT_RNR:
		seq_puts(m, "rnr - -");
		break;
	case HERALD_FAULT_WR:
		seq_printf(m, "wr %s -", NAME_OF(statuses, f->value));
		break;
	case HERALD_FAULT_RECV:
		seq_printf(m, "recv %s -", NAME_OF(statuses, f->value));
		break;
	default:
		seq_printf(m, "verb %s %u", NAME_OF(verbs, f->site), f->value);
		break;
	}
}

static const char * const trigger_names[] = {
	[HERALD_FAULT_NTH] = "nth",
	[HERALD_FAULT_EVERY] = "every",
	[HERALD_FAULT_PERMILLE] = "permille",
};

static void show_fault(const struct herald_fault *f, void *arg)
{
	struct seq_file *m = arg;

	seq_printf(m, "%u ", f->id);
	show_effect(m, f);
	if (f->qpn)
		seq_printf(m, " %u", f->qpn);
	else
		seq_puts(m, " -");
	seq_printf(m, " %s %u %llu %llu %llu ", trigger_names[f->trigger], f->number, f->seed,
		   f->seen, f->struck);
	if (f->left == HERALD_FAULT_NO_END)
		seq_puts(m, "-\n");
	else
		seq_printf(m, "%llu\n", f->left);
}

int herald_faults_show(struct seq_file *m, void *unused)
{
	seq_puts(m, "id kind what value qpn when number seed seen struck left\n");
	herald_faults_each(m->private, show_fault, m);
	return 0;
}
