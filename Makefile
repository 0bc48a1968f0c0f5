# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# "make help" lists the targets. The kernel module's own makefile is Kbuild.

KVER	?= $(shell uname -r)
KDIR	?= /lib/modules/$(KVER)/build
VERSION	:= $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)

.PHONY: all modules install modules_install user-install dkms clean help

all: modules

modules:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

modules_install: modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) $(if $(DESTDIR),INSTALL_MOD_PATH=$(DESTDIR)) modules_install

user-install: user
	mkdir -p $(DESTDIR)/
	cp -a build/user/install/. $(DESTDIR)/

install: modules_install user-install

# The sources, where dkms looks for them.
dkms:
	mkdir -p $(DESTDIR)/usr/src/herald-$(VERSION)
	cp -a Kbuild Makefile dkms.conf LICENSE LICENSES kernel include \
		$(DESTDIR)/usr/src/herald-$(VERSION)/
	@echo "next: dkms install herald/$(VERSION)"

# All but the caches of the test lanes, which are outside the tree.
clean:
	rm -rf build
	find kernel tests -name '*.o' -delete -o -name '.*.cmd' -delete -o -name '*.mod' -delete \
		-o -name '*.mod.c' -delete -o -name '*.ko' -delete
	rm -f herald.o herald.ko herald.mod herald.mod.c herald.mod.o .herald*.cmd \
		.module-common.o ..module-common.o.cmd .Module.symvers.cmd .modules.order.cmd \
		Module.symvers modules.order

help:
	@echo "modules          herald.ko for the kernel in KDIR=$(KDIR)"
	@echo "user             the provider, the tools and their tests, into build/user"
	@echo "install          module and user space, below DESTDIR if that is set"
	@echo "dkms             the module's sources to /usr/src/herald-$(VERSION), for dkms"
	@echo "demo             from nothing to NFS over RDMA in a UML kernel, step by step: seconds once built"
	@echo "test             everything, on the lanes in LANES=\"host uml debug stock\""
	@echo "lane-uml         one lane (lane-debug, lane-stock), the jobs in JOBS_UML"
	@echo "lanes-setup      fetch and build what the lanes need, run nothing"
	@echo "bench            speed against rxe, siw and the machine's limits; BENCH=short for a first look"
	@echo "clean            remove all that was built here"

-include $(wildcard mk/*.mk)
