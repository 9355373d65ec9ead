// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a client that opens connections and sends nothing, drips, or does not read loses those connections
// before another client loses a reply. test/e2e/run-crowd repeats this with ten thousand of them against the programs.
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/http/http_server_internal.h"
#include "test/support/certs.h"
#include "test/support/http_fixture.h"
#include "test/support/on_valgrind.h"

#define HOST      "Host: test\r\n"
#define GET       "GET /echo HTTP/1.1\r\n" HOST "\r\n"
#define CROWD     320
#define PLACES    256 // fewer than CROWD
#define PEER      "127.0.0.1"
#define OTHER     "127.0.0.2"
#define TURNS_MAX 20000

// Opens a connection from the address `from` and sends `start`.
static int dial(const struct http_fixture *f, const char *from, const char *start)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	                         .sin_port = htons(http_server_port(f->server))},
	                   local = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET, from, &local.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&local, sizeof local), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	assert_int_equal(send(fd, start, strlen(start), MSG_NOSIGNAL), strlen(start));
	return fd;
}

// Runs the loop until the server has read everything that was sent.
static void turn(const struct http_fixture *f)
{
	for (int i = 0; i < 40; i++)
		event_base_loop(f->loop, EVLOOP_NONBLOCK);
}

static bool is_closed(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK);
	return n == 0 || (n < 0 && errno != EAGAIN);
}

// Returns the status of the reply on `fd`; 0 when the server closes the connection without a reply.
static int status_of(const struct http_fixture *f, int fd)
{
	char reply[16] = "";
	for (int i = 0; i < TURNS_MAX; i++) {
		event_base_loop(f->loop, EVLOOP_NONBLOCK);
		ssize_t n = recv(fd, reply, sizeof reply - 1, MSG_DONTWAIT | MSG_PEEK);
		if (n >= 12)
			return (reply[9] - '0') * 100 + (reply[10] - '0') * 10 + (reply[11] - '0');
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return 0;
		usleep(n < 0 ? 10 : 0);
	}
	fail_msg("no reply within %d turns", TURNS_MAX);
	return -1;
}

static int probe(const struct http_fixture *f, const char *from)
{
	int fd = dial(f, from, GET), status = status_of(f, fd);
	close(fd);
	return status;
}

static void probe_is_answered_through_a_crowd_that_sends_no_request(void **state)
{
	struct http_fixture *f = *state;
	static const char *const starts[] = {
	        "",
	        "G",
	        "GET /echo HTTP/1.1\r\nX: ",
	        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\nx",
	        GET, // idle from its reply on
	        "\x16\x03\x01",
	};
	static const char *const froms[] = {PEER, OTHER};
	static int fds[CROWD];
	http_fixture_serve(f, (struct http_server_options){.max_peer_connections = 64, .max_silent = PLACES});
	for (size_t kind = 0; kind < COUNT(starts); kind++)
		for (size_t from = 0; from < COUNT(froms); from++) {
			for (int i = 0; i < CROWD; i++) {
				fds[i] = dial(f, froms[from], starts[kind]);
				if (i % 32 == 0)
					turn(f);
			}
			for (int i = 0; i < 10; i++) {
				int status = probe(f, PEER);
				if (status != 200)
					fail_msg("kind %zu from %s: probe %d got %d", kind, froms[from], i, status);
			}
			for (int i = 0; i < CROWD; i++)
				close(fds[i]);
			turn(f);
		}
}

static void at_its_own_ceiling_a_peer_loses_its_own_oldest(void **state)
{
	struct http_fixture *f = *state;
	struct http_server_stats stats;
	int mine[5], other[4];
	http_fixture_serve(f, (struct http_server_options){.max_silent = 8});
	for (size_t i = 0; i < COUNT(other); i++)
		other[i] = dial(f, OTHER, ""); // older than all of PEER
	for (size_t i = 0; i < COUNT(mine); i++) {
		mine[i] = dial(f, PEER, "");
		turn(f);
	}
	assert_true(is_closed(mine[0]));
	for (size_t i = 1; i < COUNT(mine); i++)
		assert_false(is_closed(mine[i]));
	for (size_t i = 0; i < COUNT(other); i++)
		assert_false(is_closed(other[i]));
	http_server_get_stats(f->server, &stats);
	assert_int_equal(stats.closed[HTTP_CLOSE_EVICTED_SILENT], 1);
	for (size_t i = 0; i < COUNT(mine); i++)
		close(mine[i]);
	for (size_t i = 0; i < COUNT(other); i++)
		close(other[i]);
}

static void of_all_the_address_with_most_silent_connections_loses_its_oldest(void **state)
{
	struct http_fixture *f = *state;
	int lone, many[4], more[5];
	http_fixture_serve(f, (struct http_server_options){.max_silent = 8});
	lone = dial(f, PEER, ""); // the oldest of all
	turn(f);
	for (size_t i = 0; i < COUNT(many); i++) {
		many[i] = dial(f, OTHER, "");
		turn(f);
	}
	for (size_t i = 0; i < COUNT(more); i++) {
		more[i] = dial(f, "127.0.0.3", "");
		turn(f);
	}
	assert_false(is_closed(lone));
	assert_true(is_closed(many[0])); // as many as the other address, and older
	assert_true(is_closed(more[0]));
	for (size_t i = 1; i < COUNT(many); i++)
		assert_false(is_closed(many[i]));
	for (size_t i = 1; i < COUNT(more); i++)
		assert_false(is_closed(more[i]));
	close(lone);
	for (size_t i = 0; i < COUNT(many); i++)
		close(many[i]);
	for (size_t i = 0; i < COUNT(more); i++)
		close(more[i]);
}

static void request_is_read_before_a_burst_of_newer_connections_pushes_it_out(void **state)
{
	struct http_fixture *f = *state;
	int burst[60];
	http_fixture_serve(f, (struct http_server_options){.max_silent = 16});
	int fd = dial(f, PEER, GET);
	for (size_t i = 0; i < COUNT(burst); i++) // all of them are queued in the kernel
		burst[i] = dial(f, PEER, "");
	assert_int_equal(status_of(f, fd), 200);
	for (size_t i = 0; i < COUNT(burst); i++)
		close(burst[i]);
	close(fd);
}

static void requests_that_arrive_at_once_are_answered_though_they_are_more_than_the_places(void **state)
{
	struct http_fixture *f = *state;
	int fds[12];
	http_fixture_serve(f, (struct http_server_options){.max_peer_connections = 4});
	for (size_t i = 0; i < COUNT(fds); i++)
		fds[i] = dial(f, PEER, GET);
	for (size_t i = 0; i < COUNT(fds); i++)
		assert_int_equal(status_of(f, fds[i]), 200);
	for (size_t i = 0; i < COUNT(fds); i++)
		close(fds[i]);
}

// Reads everything that was sent, so that only the end of the connection remains to be read.
static void read_over(int fd)
{
	char drop[65536];
	while (recv(fd, drop, sizeof drop, MSG_DONTWAIT) > 0)
		;
}

static void request_takes_the_place_of_an_idle_connection_and_then_of_a_slow_reader(void **state)
{
	struct http_fixture *f = *state;
	static const char hold[] = "GET /hold HTTP/1.1\r\n" HOST "\r\n";
	http_fixture_serve(f, (struct http_server_options){.max_connections = 3});
	int silent = dial(f, PEER, ""), held[3] = {dial(f, PEER, hold)};
	int slow = dial(f, PEER, "GET /big?bytes=16000000 HTTP/1.1\r\n" HOST "\r\n"), idle = dial(f, PEER, GET);
	assert_int_equal(status_of(f, idle), 200);
	turn(f);
	read_over(idle);
	assert_false(is_closed(idle));
	held[1] = dial(f, PEER, hold);
	turn(f);
	assert_true(is_closed(idle));
	assert_int_equal(f->handled, 3);
	held[2] = dial(f, PEER, hold);
	turn(f);
	read_over(slow);
	assert_true(is_closed(slow));
	assert_int_equal(f->n_held, 3);
	assert_int_equal(probe(f, PEER), 503); // every place has a request in progress
	assert_false(is_closed(silent));
	http_fixture_release(f);
	for (size_t i = 0; i < COUNT(held); i++) {
		assert_int_equal(status_of(f, held[i]), 200);
		close(held[i]);
	}
	assert_int_equal(probe(f, PEER), 200);
	close(silent);
	close(idle);
	close(slow);
}

static void at_its_share_a_peer_gives_up_its_own_idle_connections(void **state)
{
	struct http_fixture *f = *state;
	http_fixture_serve(f, (struct http_server_options){.max_connections = 16, .max_peer_connections = 2});
	int other = dial(f, OTHER, GET), mine[3];
	assert_int_equal(status_of(f, other), 200);
	for (size_t i = 0; i < COUNT(mine); i++) {
		mine[i] = dial(f, PEER, GET);
		assert_int_equal(status_of(f, mine[i]), 200);
	}
	turn(f);
	read_over(other);
	for (size_t i = 0; i < COUNT(mine); i++)
		read_over(mine[i]);
	assert_false(is_closed(other));
	assert_true(is_closed(mine[0]));
	assert_false(is_closed(mine[1]));
	assert_false(is_closed(mine[2]));
	for (size_t i = 0; i < COUNT(mine); i++)
		close(mine[i]);
	close(other);
}

static void dripping_head_is_cut_though_the_connection_may_idle_for_long(void **state)
{
	struct http_fixture *f = *state;
	http_fixture_serve(f, (struct http_server_options){.head_ms = 60});
	static const char *const starts[] = {"G", GET "\r\nG"};
	for (size_t i = 0; i < COUNT(starts); i++) {
		struct raw_client *c = http_fixture_dial(f);
		int64_t begin = test_now_ms();
		raw_client_send(c, starts[i], 0);
		while (!*raw_client_closed(c) && test_now_ms() - begin < FIXTURE_LIMIT_MS) {
			raw_client_send(c, "E", 1);
			test_loop_for(f->loop, 10);
		}
		assert_true(*raw_client_closed(c));
		assert_int_equal(raw_client_count(c, "HTTP/1.1 408 "), 1);
		assert_int_equal(raw_client_count(c, "HTTP/1.1 200 "), i);
		raw_client_free(c);
	}
	struct http_server_stats stats;
	http_server_get_stats(f->server, &stats);
	assert_int_equal(stats.closed[HTTP_CLOSE_REQUEST_LATE], COUNT(starts));
}

static void unread_replies_are_bounded_together(void **state)
{
	struct http_fixture *f = *state;
	enum { BYTES = 16000000, SLOW = 8 };
	int fds[SLOW];
	struct http_server_stats stats;
	http_fixture_serve(f, (struct http_server_options){.max_unread_bytes = 2 * BYTES});
	for (int i = 0; i < SLOW; i++) {
		fds[i] = dial(f, OTHER, "GET /big?bytes=16000000 HTTP/1.1\r\n" HOST "\r\n");
		turn(f);
	}
	assert_int_equal(probe(f, PEER), 200);
	turn(f);
	http_server_get_stats(f->server, &stats);
	assert_in_range(stats.closed[HTTP_CLOSE_EVICTED_SLOW], SLOW - 3, SLOW - 1); // some of each is in the kernel
	assert_int_equal(stats.open, SLOW - (int)stats.closed[HTTP_CLOSE_EVICTED_SLOW]);
	for (int i = 0; i < SLOW; i++)
		close(fds[i]);
}

struct page {
	size_t len;
	size_t used_max; // heap in use at the most, of all requests
	int n;
};

static void handle_page(void *arg, struct http_exchange *x)
{
	struct page *page = arg;
	struct mallinfo2 m = mallinfo2();
	char *body = calloc(1, page->len);
	assert_non_null(body);
	if (m.uordblks + m.hblkhd > page->used_max)
		page->used_max = m.uordblks + m.hblkhd;
	page->n++;
	http_exchange_reply(x, 200, "text/plain", body, page->len);
	free(body);
}

static void burst_of_requests_for_a_large_page_holds_no_more_memory_than_the_ceiling(void **state)
{
	struct http_fixture *f = *state;
	enum { BYTES = 600000, CLIENTS = 48, PAGES = 4 };
	struct page page = {.len = BYTES};
	struct err e;
	int fds[CLIENTS];
	http_fixture_serve(f, (struct http_server_options){.max_unread_bytes = PAGES * BYTES});
	assert_int_equal(http_server_route(f->server, "/page", handle_page, &page, &e), 0);
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = dial(f, i % 2 ? PEER : OTHER, "GET /page HTTP/1.1\r\n" HOST "\r\n");
	struct mallinfo2 before = mallinfo2();
	turn(f); // the requests are read in one turn of the loop
	assert_int_equal(page.n, CLIENTS);
	assert_true(page.used_max < before.uordblks + before.hblkhd + (PAGES + 1) * BYTES + CLIENTS * 30000);
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
}

// Counts the sockets of the server's port that no process holds and that have bytes to send.
static int abandoned_replies(const struct http_fixture *f)
{
	char line[512];
	FILE *tcp = fopen("/proc/net/tcp", "re");
	int n = 0;
	assert_non_null(tcp);
	char port[8];
	snprintf(port, sizeof port, "%04X ", http_server_port(f->server));
	while (fgets(line, sizeof line, tcp)) {
		// "sl: local:port remote:port state tx:rx timer:when retransmits uid timeout inode", up to uid of fixed
		// width
		const char *entry = strstr(line, ": ");
		if (!entry || strlen(entry) < 72 || strncmp(entry + 11, port, 5) != 0)
			continue;
		bool has_unsent = strncmp(entry + 33, "00000000:", 9) != 0;
		const char *rest = entry + 71;
		for (int column = 0; column < 2; column++) { // uid, timeout
			rest += strspn(rest, " ");
			rest += strcspn(rest, " ");
		}
		n += has_unsent && strncmp(rest, " 0 ", 3) == 0;
	}
	fclose(tcp);
	return n;
}

// Opens a connection that accepts few bytes until they are read.
static int dial_narrow(const struct http_fixture *f, const char *start)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	                         .sin_port = htons(http_server_port(f->server))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), bytes = 4096;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	assert_int_equal(send(fd, start, strlen(start), MSG_NOSIGNAL), strlen(start));
	return fd;
}

// Returns the bytes that arrive until the connection ends.
static size_t read_to_end(const struct http_fixture *f, int fd)
{
	static char text[65536];
	size_t len = 0;
	for (int i = 0; i < TURNS_MAX; i++) {
		event_base_loop(f->loop, EVLOOP_NONBLOCK);
		ssize_t n = recv(fd, text, sizeof text, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return len;
		len += n > 0 ? (size_t)n : 0;
		usleep(n < 0 ? 100 : 0);
	}
	fail_msg("the connection is open after %d turns", TURNS_MAX);
	return 0;
}

static void unread_reply_does_not_outlive_its_connection_in_the_kernel(void **state)
{
	struct http_fixture *f = *state;
	// The kernel takes all of the first reply and a part of the second.
	static const char small[] = "GET /big?bytes=40000 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
	                  large[] = "GET /big?bytes=4000000 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n";
	enum { PLACES_OF_ALL = 4, CLIENTS = 12 };
	static const char *const starts[] = {small, large};
	struct http_server_stats stats;
	int fds[CLIENTS];
	for (size_t kind = 0; kind < COUNT(starts); kind++) {
		http_fixture_serve(f, (struct http_server_options){.max_connections = PLACES_OF_ALL});
		for (int i = 0; i < CLIENTS; i++) {
			fds[i] = dial_narrow(f, starts[kind]);
			turn(f);
		}
		assert_int_equal(abandoned_replies(f), 0);
		http_server_get_stats(f->server, &stats);
		assert_int_equal(stats.open, PLACES_OF_ALL);
		assert_int_equal(stats.closed[HTTP_CLOSE_EVICTED_SLOW], CLIENTS - PLACES_OF_ALL);
		// A client that reads after all gets the whole reply.
		assert_in_range(read_to_end(f, fds[CLIENTS - 1]), kind ? 4000000 : 40000, 4001000);
		for (int i = 0; i < CLIENTS; i++)
			close(fds[i]);
		turn(f);
	}
	http_fixture_serve(f, (struct http_server_options){.reply_ms = 20});
	for (size_t kind = 0; kind < COUNT(starts); kind++)
		fds[kind] = dial_narrow(f, starts[kind]);
	test_loop_for(f->loop, 60);
	http_server_get_stats(f->server, &stats);
	assert_int_equal(stats.closed[HTTP_CLOSE_REPLY_LATE], COUNT(starts));
	assert_int_equal(abandoned_replies(f), 0);
	for (size_t kind = 0; kind < COUNT(starts); kind++)
		close(fds[kind]);
}

static void silent_connection_has_no_unread_reply(void **state)
{
	struct http_fixture *f = *state;
	enum { PLACES_OF_ALL = 4, CLIENTS = 12 };
	struct http_server_stats stats;
	int fds[CLIENTS];
	http_fixture_serve(f, (struct http_server_options){.max_connections = PLACES_OF_ALL});
	for (int i = 0; i < CLIENTS; i++) { // the start of a second request while the first reply is unread
		fds[i] = dial_narrow(f, "GET /big?bytes=40000 HTTP/1.1\r\n" HOST "\r\nG");
		turn(f);
	}
	http_server_get_stats(f->server, &stats);
	assert_int_equal(stats.open, PLACES_OF_ALL);
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
}

// Returns the largest receive buffer of the server's connections.
static int receive_buffer_max(const struct http_fixture *f)
{
	int max = 0;
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_in local, peer;
		socklen_t local_len = sizeof local, peer_len = sizeof peer, len = sizeof(int);
		int bytes = 0;
		if (getsockname(fd, (struct sockaddr *)&local, &local_len) == 0 && local.sin_family == AF_INET &&
		    ntohs(local.sin_port) == http_server_port(f->server) &&
		    getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0 &&
		    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len) == 0 && bytes > max)
			max = bytes;
	}
	return max;
}

static void client_that_sends_ahead_fills_neither_the_kernel_nor_the_loop(void **state)
{
	struct http_fixture *f = *state;
	static char junk[4096];
	memset(junk, 'x', sizeof junk);
	http_fixture_serve(f, (struct http_server_options){.max_body_bytes = 4096});
	int fd = dial(f, PEER, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
	turn(f);
	assert_in_range(receive_buffer_max(f), 1,
	                2 * HTTP_SERVER_RECEIVE_BYTES); // the kernel doubles what is asked for
	// libevent calls back for as long as a full buffer is left as it is: the loop would not return.
	assert_int_equal(event_base_loopexit(f->loop, &(struct timeval){.tv_sec = 5}), 0);
	for (int i = 0, refused = 0; i < TURNS_MAX && refused < 200; i++) {
		refused = send(fd, junk, sizeof junk, MSG_DONTWAIT | MSG_NOSIGNAL) > 0 ? 0 : refused + 1;
		event_base_loop(f->loop, EVLOOP_NONBLOCK);
		assert_false(event_base_got_exit(f->loop));
	}
	http_fixture_release(f);
	assert_int_equal(status_of(f, fd), 200);
	close(fd);
}

static void process_without_descriptors_answers_in_place_of_a_silent_connection(void **state)
{
	if (on_valgrind())
		skip(); // valgrind accepts a connection above the limit, and closes it
	struct http_fixture *f = *state;
	struct rlimit before, few;
	int silent[8], fd = dial(f, PEER, ""), probes[4];
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < COUNT(silent); i++)
		silent[i] = dial(f, PEER, "");
	turn(f);
	for (size_t i = 0; i < COUNT(probes); i++)
		probes[i] = dial(f, PEER, GET);
	int next = dup(fd);
	close(next);
	few = before;
	few.rlim_cur = (rlim_t)next; // no further descriptor
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (size_t i = 0; i < COUNT(probes); i++) {
		int status = status_of(f, probes[i]);
		if (status != 200) {
			setrlimit(RLIMIT_NOFILE, &before);
			fail_msg("probe %zu got %d", i, status);
		}
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < COUNT(silent); i++)
		close(silent[i]);
	for (size_t i = 0; i < COUNT(probes); i++)
		close(probes[i]);
	close(fd);
}

static void handshakes_that_never_end_give_way_too(void **state)
{
	struct http_fixture *f = *state;
	static const char *const starts[] = {"", "\x16", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"};
	struct certs certs;
	static int fds[CROWD];
	char url[64];
	assert_int_equal(certs_init(&certs), 0);
	http_fixture_serve(f, (struct http_server_options){.tls_cert_file = certs.path[CERTS_SERVER],
	                                                   .tls_key_file = certs.path[CERTS_SERVER_KEY],
	                                                   .max_silent = PLACES});
	const struct http_tls tls = {.ca_pem = certs.pem[CERTS_CA]};
	snprintf(url, sizeof url, "https://127.0.0.1:%d/echo", http_server_port(f->server));
	static const char *const headers[] = {"Connection: close", NULL}; // a handshake each
	const struct http_request r = {.method = "GET", .url = url, .tls = &tls, .headers = headers};
	for (int i = 0; i < CROWD; i++) {
		fds[i] = dial(f, i % 2 ? PEER : OTHER, starts[(size_t)i % COUNT(starts)]);
		if (i % 32 == 0)
			turn(f);
	}
	for (int i = 0; i < 3; i++) {
		http_fixture_fetch(f, &r);
		assert_int_equal(f->result.status, 200);
	}
	for (int i = 0; i < CROWD; i++)
		close(fds[i]);
	certs_done(&certs);
}

// Creates the first record of a TLS client in `hello`. Returns its length.
static size_t client_hello(char *hello, size_t size)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(ctx);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_connect_state(ssl);
	assert_int_equal(SSL_do_handshake(ssl), -1); // waits for the server
	int len = BIO_read(SSL_get_wbio(ssl), hello, (int)size);
	assert_in_range(len, 100, size - 1);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return (size_t)len;
}

static int dial_bytes(const struct http_fixture *f, const char *from, const char *bytes, size_t len)
{
	int fd = dial(f, from, "");
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
	return fd;
}

static bool has_reply(int fd)
{
	char c;
	return recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
}

static void serve_tls(struct http_fixture *f, struct certs *certs)
{
	assert_int_equal(certs_init(certs), 0);
	http_fixture_serve(f, (struct http_server_options){.tls_cert_file = certs->path[CERTS_SERVER],
	                                                   .tls_key_file = certs->path[CERTS_SERVER_KEY],
	                                                   .max_silent = PLACES});
}

static void client_waits_for_one_handshake_of_another_address_and_not_for_all(void **state)
{
	struct http_fixture *f = *state;
	struct certs certs;
	char hello[2048];
	int fds[100], started = 0;
	size_t len = client_hello(hello, sizeof hello);
	serve_tls(f, &certs);
	for (size_t i = 0; i < COUNT(fds); i++)
		fds[i] = dial_bytes(f, OTHER, hello, len);
	int fd = dial_bytes(f, PEER, hello, len);
	for (int i = 0; i < TURNS_MAX && !has_reply(fd); i++)
		event_base_loop(f->loop, EVLOOP_ONCE | EVLOOP_NONBLOCK); // a single turn, whatever it schedules
	assert_true(has_reply(fd));
	for (size_t i = 0; i < COUNT(fds); i++)
		started += has_reply(fds[i]);
	assert_in_range(started, 1, COUNT(fds) / 2);
	for (int i = 0; i < TURNS_MAX && started < (int)COUNT(fds); i++) {
		event_base_loop(f->loop, EVLOOP_NONBLOCK);
		started = 0;
		for (size_t k = 0; k < COUNT(fds); k++)
			started += has_reply(fds[k]);
	}
	assert_int_equal(started, COUNT(fds));
	for (size_t i = 0; i < COUNT(fds); i++)
		close(fds[i]);
	close(fd);
	certs_done(&certs);
}

static void handshake_starts_when_the_last_byte_of_its_hello_arrives(void **state)
{
	struct http_fixture *f = *state;
	struct certs certs;
	char hello[2048];
	size_t len = client_hello(hello, sizeof hello);
	serve_tls(f, &certs);
	static const int on = 1;
	int fd = dial(f, PEER, "");
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
	for (size_t i = 0; i < len; i++) {
		event_base_loop(f->loop, EVLOOP_NONBLOCK);
		assert_false(has_reply(fd));
		assert_int_equal(send(fd, hello + i, 1, MSG_NOSIGNAL), 1);
	}
	for (int i = 0; i < TURNS_MAX && !has_reply(fd); i++) {
		event_base_loop(f->loop, EVLOOP_NONBLOCK);
		usleep(10);
	}
	assert_true(has_reply(fd));
	close(fd);
	certs_done(&certs);
}

static void connections_that_end_before_their_handshake_are_freed(void **state)
{
	struct http_fixture *f = *state;
	struct certs certs;
	struct http_server_stats stats;
	char hello[2048];
	int fds[60];
	size_t len = client_hello(hello, sizeof hello);
	serve_tls(f, &certs);
	for (size_t i = 0; i < COUNT(fds); i++)
		fds[i] = dial_bytes(f, PEER, i % 3 == 0 ? "GET / HTTP/1.1" : hello,
		                    i % 3 == 0   ? 14
		                    : i % 3 == 1 ? 50
		                                 : len);
	for (int i = 0; i < 3; i++)
		event_base_loop(f->loop, EVLOOP_ONCE | EVLOOP_NONBLOCK); // some have started, some are queued
	for (size_t i = 0; i < COUNT(fds); i++)
		close(fds[i]);
	for (int i = 0; i < TURNS_MAX && (http_server_get_stats(f->server, &stats), stats.open > 0); i++)
		event_base_loop(f->loop, EVLOOP_NONBLOCK);
	assert_int_equal(stats.accepted, COUNT(fds));
	assert_int_equal(stats.open, 0);
	certs_done(&certs);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, http_fixture_setup, http_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(probe_is_answered_through_a_crowd_that_sends_no_request),
	        TEST(at_its_own_ceiling_a_peer_loses_its_own_oldest),
	        TEST(of_all_the_address_with_most_silent_connections_loses_its_oldest),
	        TEST(request_is_read_before_a_burst_of_newer_connections_pushes_it_out),
	        TEST(requests_that_arrive_at_once_are_answered_though_they_are_more_than_the_places),
	        TEST(request_takes_the_place_of_an_idle_connection_and_then_of_a_slow_reader),
	        TEST(at_its_share_a_peer_gives_up_its_own_idle_connections),
	        TEST(dripping_head_is_cut_though_the_connection_may_idle_for_long),
	        TEST(unread_replies_are_bounded_together),
	        TEST(burst_of_requests_for_a_large_page_holds_no_more_memory_than_the_ceiling),
	        TEST(unread_reply_does_not_outlive_its_connection_in_the_kernel),
	        TEST(silent_connection_has_no_unread_reply),
	        TEST(client_that_sends_ahead_fills_neither_the_kernel_nor_the_loop),
	        TEST(process_without_descriptors_answers_in_place_of_a_silent_connection),
	        TEST(handshakes_that_never_end_give_way_too),
	        TEST(client_waits_for_one_handshake_of_another_address_and_not_for_all),
	        TEST(handshake_starts_when_the_last_byte_of_its_hello_arrives),
	        TEST(connections_that_end_before_their_handshake_are_freed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
