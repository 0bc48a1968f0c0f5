/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "channel.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "cq.h"
#include "group.h"

namespace torture {

constexpr int kLook = 100; /* ms between two looks whether it is over; no event is got because of it */

/* ------------------------------------------------------------- interrupts -- */

void prepare_interrupts()
{
	struct sigaction action{};

	action.sa_handler = [](int) {};
	sigaction(SIGUSR1, &action, nullptr);
}

void interrupt(std::thread &thread)
{
	pthread_kill(thread.native_handle(), SIGUSR1);
}

/* ---------------------------------------------------------------- waiting -- */

Waiter::Waiter(ibv_comp_channel *channel, Wait how) : channel_(channel), how_(how)
{
	epoll_event event{};

	if (how != Wait::blocking)
		fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
	if (how != Wait::level && how != Wait::edge)
		return;
	epoll_ = epoll_create1(0);
	event.events = how == Wait::edge ? EPOLLIN | EPOLLET : EPOLLIN;
	if (epoll_ctl(epoll_, EPOLL_CTL_ADD, channel->fd, &event))
		fail("epoll_ctl: %m");
}

Waiter::~Waiter()
{
	if (epoll_ >= 0)
		::close(epoll_);
}

bool Waiter::wait_poll()
{
	pollfd p = {channel_->fd, POLLIN, 0};

	return ::poll(&p, 1, kLook) > 0;
}

/* An edge comes once, so all that is there has to be got before the next is waited for. */
bool Waiter::wait_epoll()
{
	epoll_event event{};

	if (how_ == Wait::edge && !drained_)
		return true;
	return epoll_wait(epoll_, &event, 1, kLook) > 0;
}

void *Waiter::get(ibv_cq **cq)
{
	void *context = nullptr;
	const int rc = ibv_get_cq_event(channel_, cq, &context);

	drained_ = rc != 0;
	if (rc && errno != EAGAIN && errno != EINTR)
		fail("ibv_get_cq_event: %m");
	return rc ? nullptr : context;
}

void *Waiter::next(ibv_cq **cq)
{
	switch (how_) {
	case Wait::poll:
		return wait_poll() ? get(cq) : nullptr;
	case Wait::level:
	case Wait::edge:
		return wait_epoll() ? get(cq) : nullptr;
	default:
		return get(cq);
	}
}

/* --------------------------------------------------------------- channels -- */

void Channel::serve(unsigned stream)
{
	Random random(stream);
	Waiter waiter(channel_, how_);

	while (!stopping_) {
		ibv_cq *cq = nullptr;
		const auto *life = static_cast<Life *>(waiter.next(&cq));

		if (!life)
			continue;
		if (life->cq != cq)
			fail("an event's CQ and its context do not fit");
		life->owner->on_event(*life, random);
		if (random.one_in(4))
			post_somewhere(random);
	}
	running_--;
}

Channel::Channel(Wait how, unsigned waiters)
	: how_(how), channel_(must(ibv_create_comp_channel(device.ctx), "ibv_create_comp_channel"))
{
	static unsigned stream = 1000;

	running_ = waiters;
	for (unsigned i = 0; i < waiters; i++)
		threads_.emplace_back(&Channel::serve, this, stream++);
}

void Channel::stop()
{
	stopping_ = true;
	/* it may come before the thread is where it can be interrupted */
	while (running_) {
		for (auto &thread : threads_)
			interrupt(thread);
		nap(5000);
	}
	for (auto &thread : threads_)
		thread.join();
}

Channel::~Channel()
{
	stop();
	must(ibv_destroy_comp_channel(channel_), "ibv_destroy_comp_channel");
}

} // namespace torture
