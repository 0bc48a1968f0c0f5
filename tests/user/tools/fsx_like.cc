/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Random file operations against a model in memory, compared byte for byte; what the file system exerciser of old did.
 *
 *	fsx_like [-s SEED] [-n OPERATIONS] [-l MAX-LENGTH] [-o MAX-IO] [-d] [-m MODEL] FILE
 *	fsx_like -c MODEL FILE
 *
 * -m writes the model to a file when all went well, and -c compares a file with such a model: so the comparison can be
 * made after a remount, from the server's side, or by another client. -d uses O_DIRECT for half of the reads and
 * writes. Operations: read, write, append, truncate, grow, mmap read and write, fsync, close and open again, drop the
 * caches of this file (POSIX_FADV_DONTNEED).
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

uint64_t state;
unsigned long step;

uint64_t random_number()
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

uint64_t below(uint64_t n)
{
	return n ? random_number() % n : 0;
}

[[noreturn]] void die(const std::string &what)
{
	fprintf(stderr, "fsx_like: operation %lu: %s: %s\n", step, what.c_str(), strerror(errno));
	exit(1);
}

[[noreturn]] void mismatch(const char *what, const uint8_t *want, const uint8_t *got, size_t off, size_t len)
{
	size_t i = 0;

	while (i < len && want[i] == got[i])
		i++;
	fprintf(stderr, "fsx_like: operation %lu: %s: byte %zu is %02x, should be %02x (of %zu at %zu)\n", step, what,
		off + i, got[i], want[i], len, off);
	exit(1);
}

class File {
public:
	File(std::string path, size_t max_length, size_t max_io, bool direct)
		: path_(std::move(path)), max_length_(max_length), max_io_(max_io), direct_(direct), buffer_(max_io)
	{
		reopen(O_CREAT | O_TRUNC);
		if (posix_memalign(reinterpret_cast<void **>(&aligned_), kBlock, max_io + kBlock))
			die("memory");
	}
	~File()
	{
		close(fd_);
		free(aligned_);
	}

	void run_one()
	{
		static void (File::*const operations[])() = {
			&File::read_some, &File::read_some, &File::write_some, &File::write_some, &File::write_some,
			&File::append,    &File::map_read,  &File::map_write,  &File::truncate,   &File::grow,
			&File::sync,      &File::again,     &File::drop,
		};

		(this->*operations[below(std::size(operations))])();
	}

	void check_all()
	{
		struct stat st;

		if (fsync(fd_) || fstat(fd_, &st))
			die("fsync, fstat");
		if (static_cast<size_t>(st.st_size) != model_.size()) {
			fprintf(stderr, "fsx_like: operation %lu: the length is %lld, should be %zu\n", step,
				static_cast<long long>(st.st_size), model_.size());
			exit(1);
		}
		for (size_t off = 0; off < model_.size(); off += max_io_)
			read_at(off, std::min(max_io_, model_.size() - off), false);
	}

	const std::vector<uint8_t> &model() const { return model_; }

private:
	static constexpr size_t kBlock = 4096;

	void reopen(int more)
	{
		if (fd_ >= 0 && close(fd_))
			die("close");
		fd_ = open(path_.c_str(), O_RDWR | more, 0644);
		if (fd_ < 0)
			die("open " + path_);
	}
	void set_direct(bool on)
	{
		int flags = fcntl(fd_, F_GETFL);

		if (fcntl(fd_, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT))
			die("O_DIRECT");
	}
	void read_at(size_t off, size_t len, bool direct)
	{
		uint8_t *to = direct ? aligned_ : buffer_.data();
		size_t got = 0;

		if (direct)
			set_direct(true);
		while (got < len) {
			ssize_t n = pread(fd_, to + got, len - got, off + got);

			if (n < 0)
				die("pread");
			if (n == 0)
				break;
			got += n;
		}
		if (direct)
			set_direct(false);
		if (got != len || memcmp(to, model_.data() + off, len) != 0)
			mismatch(got == len ? "read" : "short read", model_.data() + off, to, off, got);
	}
	void write_at(size_t off, size_t len, bool direct)
	{
		uint8_t *from = direct ? aligned_ : buffer_.data();

		for (size_t i = 0; i < len; i += 8) {
			uint64_t v = random_number();
			memcpy(from + i, &v, std::min<size_t>(8, len - i));
		}
		if (off + len > model_.size())
			model_.resize(off + len);
		memcpy(model_.data() + off, from, len);
		if (direct)
			set_direct(true);
		for (size_t done = 0; done < len;) {
			ssize_t n = pwrite(fd_, from + done, len - done, off + done);

			if (n <= 0)
				die("pwrite");
			done += n;
		}
		if (direct)
			set_direct(false);
	}

	/* O_DIRECT wants whole blocks. */
	bool pick(size_t limit, size_t &off, size_t &len)
	{
		bool direct = direct_ && below(2);

		off = below(limit);
		len = 1 + below(std::min(max_io_, limit - off));
		if (direct) {
			off = off / kBlock * kBlock;
			len = len / kBlock * kBlock;
		}
		return direct && len;
	}
	void read_some()
	{
		size_t off, len;

		if (model_.empty())
			return;
		bool direct = pick(model_.size(), off, len);
		if (len)
			read_at(off, std::min(len, model_.size() - off), direct && off + len <= model_.size());
	}
	void write_some()
	{
		size_t off, len;
		bool direct = pick(max_length_, off, len);

		if (len)
			write_at(off, len, direct);
	}
	void append()
	{
		size_t room = max_length_ - std::min(max_length_, model_.size());

		if (room)
			write_at(model_.size(), 1 + below(std::min(max_io_, room)), false);
	}
	void truncate() { set_length(below(model_.size() + 1)); }
	void grow() { set_length(model_.size() + below(max_length_ - std::min(max_length_, model_.size()) + 1)); }
	void set_length(size_t n)
	{
		if (ftruncate(fd_, n))
			die("ftruncate");
		model_.resize(n);
	}
	uint8_t *map(size_t &off, size_t &len, size_t &skip, int prot)
	{
		off = below(model_.size());
		len = 1 + below(std::min(max_io_, model_.size() - off));
		skip = off % kBlock;
		void *p = mmap(nullptr, len + skip, prot, MAP_SHARED, fd_, off - skip);
		if (p == MAP_FAILED)
			die("mmap");
		return static_cast<uint8_t *>(p);
	}
	void map_read()
	{
		size_t off, len, skip;

		if (model_.empty())
			return;
		uint8_t *p = map(off, len, skip, PROT_READ);
		if (memcmp(p + skip, model_.data() + off, len) != 0)
			mismatch("mapped read", model_.data() + off, p + skip, off, len);
		munmap(p, len + skip);
	}
	void map_write()
	{
		size_t off, len, skip;

		if (model_.empty())
			return;
		uint8_t *p = map(off, len, skip, PROT_READ | PROT_WRITE);
		for (size_t i = 0; i < len; i++)
			p[skip + i] = model_[off + i] = static_cast<uint8_t>(random_number());
		if (msync(p, len + skip, MS_SYNC))
			die("msync");
		munmap(p, len + skip);
	}
	void sync()
	{
		if (fsync(fd_))
			die("fsync");
	}
	void again() { reopen(0); }
	void drop()
	{
		sync();
		posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
	}

	std::string path_;
	size_t max_length_, max_io_;
	bool direct_;
	int fd_ = -1;
	std::vector<uint8_t> model_, buffer_;
	uint8_t *aligned_ = nullptr;
};

std::vector<uint8_t> slurp(const char *path)
{
	std::vector<uint8_t> all;
	uint8_t buf[65536];
	int fd = open(path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		die(std::string("open ") + path);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		all.insert(all.end(), buf, buf + n);
	if (n < 0)
		die(std::string("read ") + path);
	close(fd);
	return all;
}

int compare(const char *model, const char *path)
{
	auto want = slurp(model), got = slurp(path);

	if (want.size() != got.size()) {
		fprintf(stderr, "fsx_like: %s has %zu bytes, should have %zu\n", path, got.size(), want.size());
		return 1;
	}
	if (want != got)
		mismatch(path, want.data(), got.data(), 0, want.size());
	printf("%s: %zu bytes, as they should be\n", path, got.size());
	return 0;
}

void save(const char *path, const std::vector<uint8_t> &bytes)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(bytes.data(), 1, bytes.size(), f) != bytes.size() || fclose(f))
		die(std::string("write ") + path);
}

} // namespace

int main(int argc, char **argv)
{
	unsigned long operations = 1000, seed = 1;
	size_t max_length = 4 << 20, max_io = 1 << 20;
	const char *model = nullptr, *against = nullptr;
	bool direct = false;
	int opt;

	while ((opt = getopt(argc, argv, "s:n:l:o:dm:c:")) != -1) {
		switch (opt) {
		case 's':
			seed = strtoul(optarg, nullptr, 0);
			break;
		case 'n':
			operations = strtoul(optarg, nullptr, 0);
			break;
		case 'l':
			max_length = strtoul(optarg, nullptr, 0);
			break;
		case 'o':
			max_io = strtoul(optarg, nullptr, 0);
			break;
		case 'd':
			direct = true;
			break;
		case 'm':
			model = optarg;
			break;
		case 'c':
			against = optarg;
			break;
		default:
			return 2;
		}
	}
	if (optind + 1 != argc || !max_length || !max_io) {
		fprintf(stderr,
			"usage: fsx_like [-s SEED] [-n OPERATIONS] [-l MAX-LENGTH] [-o MAX-IO] [-d] [-m MODEL] FILE\n"
			"       fsx_like -c MODEL FILE\n");
		return 2;
	}
	if (against)
		return compare(against, argv[optind]);
	state = seed * 0x9e3779b97f4a7c15ull + 1;
	File file(argv[optind], max_length, max_io, direct);
	for (step = 1; step <= operations; step++) {
		file.run_one();
		if (step % 100 == 0)
			file.check_all();
	}
	file.check_all();
	if (model)
		save(model, file.model());
	printf("%lu operations, %zu bytes, all as they should be\n", operations, file.model().size());
	return 0;
}
