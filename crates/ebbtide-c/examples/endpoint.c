/* A client and a server in one event loop, over two UDP sockets that lose every fourth datagram: a GET, a PUT and a GET of 1000 bytes
 * in blocks, an observation. Also tries the calls that must be refused, and datagrams of random bytes. Returns 0 if all is well. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <ebbtide_endpoint.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHECK(call, wanted) \
    do { \
        int returned = (call); \
        if (returned != (wanted)) { printf("line %d: %s is %d, not %d\n", __LINE__, #call, returned, (int)(wanted)); return 1; } \
    } while (0)

/* A socket with an endpoint. */
struct node {
    ebbtide_endpoint endpoint;
    int socket, sent, loses;
    uint32_t seed;
};

/* The server's resources: /led holds a body, /ticks can be observed. */
struct resources { uint8_t led[2048]; size_t length; int ticks, refused; };

/* What a request came to. */
struct outcome { uint8_t body[2048]; size_t length; int result, calls; };

static uint64_t now_ms(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000 + (uint64_t)at.tv_nsec / 1000000;
}

static uint32_t draw(void *context) {
    struct node *node = context;
    node->seed = node->seed * 1664525 + 1013904223; /* an example: a device takes its hardware's */
    return node->seed ^ node->seed >> 15;
}

static void send_datagram(void *context, const ebbtide_address *to, const uint8_t *datagram, size_t length) {
    struct node *node = context;
    struct sockaddr_in address;
    memcpy(&address, to->bytes, sizeof address);
    if (node->sent++ % 4 != 3 || !node->loses) sendto(node->socket, datagram, length, 0, (struct sockaddr *)&address, sizeof address);
}

static int open_node(struct node *node, uint32_t seed, ebbtide_address *address) {
    const ebbtide_settings quick = {100, 8, 1};
    ebbtide_io io = {node, send_datagram, draw};
    struct sockaddr_in any = {0};
    socklen_t length = sizeof any;
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    node->socket = socket(AF_INET, SOCK_DGRAM, 0);
    node->seed = seed;
    node->loses = 1;
    if (bind(node->socket, (struct sockaddr *)&any, sizeof any) || getsockname(node->socket, (struct sockaddr *)&any, &length)) return 1;
    memset(address, 0, sizeof *address);
    address->length = sizeof any;
    memcpy(address->bytes, &any, sizeof any);
    return ebbtide_endpoint_init(&node->endpoint, sizeof node->endpoint, &io, &quick);
}

/* One turn of the event loop: both endpoints do what is due, then take what arrives until the callback was called so often. */
static int turn(struct node *nodes, const struct outcome *it, int calls) {
    uint64_t now = now_ms(), due, first = now + 1000;
    struct pollfd ready[2];
    int which;
    for (which = 0; which < 2; which++) {
        CHECK(ebbtide_endpoint_poll(&nodes[which].endpoint, now, &due), EBBTIDE_OK);
        if (due < first) first = due;
        ready[which].fd = nodes[which].socket;
        ready[which].events = POLLIN;
    }
    if (it->calls >= calls) return 0;
    if (poll(ready, 2, first > now ? (int)(first - now) : 0) < 0) return 1;
    for (which = 0; which < 2; which++) {
        struct sockaddr_in sender = {0};
        socklen_t length = sizeof sender;
        uint8_t datagram[320];
        ssize_t bytes = recvfrom(nodes[which].socket, datagram, sizeof datagram, MSG_DONTWAIT, (struct sockaddr *)&sender, &length);
        ebbtide_address from = {0};
        if (bytes < 0) continue;
        from.length = sizeof sender;
        memcpy(from.bytes, &sender, sizeof sender);
        CHECK(ebbtide_endpoint_receive(&nodes[which].endpoint, now_ms(), &from, datagram, (size_t)bytes), EBBTIDE_OK);
    }
    return 0;
}

static int is_path(const ebbtide_message *message, const char *path) {
    const uint8_t *value;
    int length = ebbtide_message_option(message, 11, 0, &value);
    return length == (int)strlen(path) && memcmp(value, path, strlen(path)) == 0;
}

static int take(void *context, const ebbtide_message *message, size_t offset) {
    struct resources *it = context;
    if (!is_path(message, "led")) return 0;
    if (offset + message->length > sizeof it->led) return 141;
    memcpy(it->led + offset, message->payload, message->length);
    it->length = offset + message->length;
    return 0;
}

static void state(void *context, uint8_t subject, uint8_t *room, size_t room_length, ebbtide_answer *answer) {
    struct resources *it = context;
    answer->code = 69;
    answer->subject = subject;
    answer->length = (size_t)snprintf((char *)room, room_length, "%d", it->ticks);
}

static struct node nodes[2];

static void answer(void *context, const ebbtide_message *message, size_t offset, uint8_t *room, size_t room_length, ebbtide_answer *answer) {
    struct resources *it = context;
    uint64_t due;
    /* A call from within a callback is out of order. */
    it->refused += ebbtide_endpoint_poll(&nodes[1].endpoint, 0, &due) == EBBTIDE_ORDER;
    if (message->code == EBBTIDE_GET && is_path(message, "ticks")) state(context, 1, room, room_length, answer);
    if (!is_path(message, "led")) return;
    answer->code = message->code == EBBTIDE_GET ? 69 : 68;
    if (message->code != EBBTIDE_GET || offset > it->length) return;
    answer->length = it->length - offset < room_length ? it->length - offset : room_length;
    answer->total = it->length;
    answer->etag = 1;
    memcpy(room, it->led + offset, answer->length);
}

static int on_body(void *context, const ebbtide_message *message, size_t offset) {
    struct outcome *it = context;
    if (offset + message->length > sizeof it->body) return 1;
    memcpy(it->body + offset, message->payload, message->length);
    it->length = offset + message->length;
    return 0;
}

static void on_done(void *context, int result) {
    struct outcome *it = context;
    it->result = result;
    it->calls++;
}

/* Waits until the callback was called so often. */
static int wait_for(struct outcome *it, int calls) {
    uint64_t end = now_ms() + 60000;
    while (it->calls < calls && now_ms() < end) CHECK(turn(nodes, it, calls), 0);
    return it->calls < calls;
}

static int refusals(const ebbtide_address *to) {
    static ebbtide_endpoint endpoint;
    ebbtide_io io = {&nodes[0], send_datagram, draw}, silent = {NULL, NULL, draw};
    ebbtide_settings none = {2000, 4, 0};
    ebbtide_request request = {0};
    ebbtide_handler handler = {0};
    uint64_t due;
    uint32_t handle;
    int more;
    CHECK(ebbtide_endpoint_poll(NULL, 0, &due), EBBTIDE_NULL);
    CHECK(ebbtide_endpoint_poll(&endpoint, 0, &due), EBBTIDE_ORDER);
    CHECK(ebbtide_endpoint_init(NULL, sizeof endpoint, &io, NULL), EBBTIDE_NULL);
    CHECK(ebbtide_endpoint_init(&endpoint, sizeof endpoint, &silent, NULL), EBBTIDE_NULL);
    CHECK(ebbtide_endpoint_init(&endpoint, sizeof endpoint - 8, &io, NULL), EBBTIDE_SIZE);
    CHECK(ebbtide_endpoint_init(&endpoint, sizeof endpoint, &io, &none), EBBTIDE_RANGE);
    CHECK(ebbtide_endpoint_init(&endpoint, sizeof endpoint, &io, NULL), EBBTIDE_OK);
    CHECK(ebbtide_endpoint_poll(&endpoint, 0, NULL), EBBTIDE_NULL);
    CHECK(ebbtide_endpoint_request(&endpoint, NULL, NULL), EBBTIDE_NULL);
    CHECK(ebbtide_endpoint_request(&endpoint, &request, NULL), EBBTIDE_RANGE);
    request.to = *to;
    request.code = EBBTIDE_GET;
    request.option_count = 1;
    CHECK(ebbtide_endpoint_request(&endpoint, &request, NULL), EBBTIDE_NULL);
    request.option_count = 9;
    request.options = (const ebbtide_option *)&request;
    CHECK(ebbtide_endpoint_request(&endpoint, &request, NULL), EBBTIDE_RANGE);
    request.option_count = 0;
    for (more = 0; more < 4; more++) CHECK(ebbtide_endpoint_request(&endpoint, &request, &handle), EBBTIDE_OK);
    CHECK(ebbtide_endpoint_request(&endpoint, &request, NULL), EBBTIDE_BUSY);
    CHECK(ebbtide_endpoint_cancel(&endpoint, 0, handle), EBBTIDE_OK);
    CHECK(ebbtide_endpoint_cancel(&endpoint, 0, handle), EBBTIDE_ORDER);
    CHECK(ebbtide_endpoint_cancel(&endpoint, 0, 99), EBBTIDE_RANGE);
    CHECK(ebbtide_endpoint_receive(&endpoint, 0, NULL, NULL, 0), EBBTIDE_NULL);
    CHECK(ebbtide_endpoint_receive(&endpoint, 0, to, NULL, 1), EBBTIDE_NULL);
    CHECK(ebbtide_endpoint_serve(&endpoint, &handler), EBBTIDE_NULL);
    return 0;
}

/* Bytes that are not CoAP, or hardly. */
static int strangers(const ebbtide_address *from) {
    uint8_t datagram[64];
    int each;
    for (each = 0; each < 5000; each++) {
        size_t length = draw(&nodes[0]) % sizeof datagram, at;
        for (at = 0; at < length; at++) datagram[at] = (uint8_t)draw(&nodes[0]);
        if (length) datagram[0] = (uint8_t)((datagram[0] & 0x37) | 0x40);
        CHECK(ebbtide_endpoint_receive(&nodes[1].endpoint, now_ms(), from, datagram, length), EBBTIDE_OK);
    }
    return 0;
}

int main(void) {
    static struct resources resources;
    static struct outcome got, put, back, seen;
    static uint8_t body[1000];
    ebbtide_handler handler = {&resources, take, answer, state};
    ebbtide_option ticks = {11, 5, (const uint8_t *)"ticks"}, led = {11, 3, (const uint8_t *)"led"};
    ebbtide_address client, server;
    ebbtide_request request = {0};
    uint32_t handle;
    size_t at;
    CHECK(open_node(&nodes[0], 1, &client), EBBTIDE_OK);
    CHECK(open_node(&nodes[1], 2, &server), EBBTIDE_OK);
    CHECK(refusals(&server), 0);
    CHECK(ebbtide_endpoint_serve(&nodes[1].endpoint, &handler), EBBTIDE_OK);

    request = (ebbtide_request){server, EBBTIDE_GET, 0, 1, &ticks, NULL, 0, &got, on_body, on_done};
    CHECK(ebbtide_endpoint_request(&nodes[0].endpoint, &request, NULL), EBBTIDE_OK);
    CHECK(wait_for(&got, 1), 0);
    CHECK(got.result, 69);
    CHECK(got.length == 1 && got.body[0] == '0', 1);

    for (at = 0; at < sizeof body; at++) body[at] = (uint8_t)at;
    request = (ebbtide_request){server, EBBTIDE_PUT, 0, 1, &led, body, sizeof body, &put, on_body, on_done};
    CHECK(ebbtide_endpoint_request(&nodes[0].endpoint, &request, NULL), EBBTIDE_OK);
    CHECK(wait_for(&put, 1), 0);
    CHECK(put.result, 68);
    request = (ebbtide_request){server, EBBTIDE_GET, 0, 1, &led, NULL, 0, &back, on_body, on_done};
    CHECK(ebbtide_endpoint_request(&nodes[0].endpoint, &request, NULL), EBBTIDE_OK);
    CHECK(wait_for(&back, 1), 0);
    CHECK(back.result, 69);
    CHECK(back.length == sizeof body && memcmp(back.body, body, sizeof body) == 0, 1);

    printf("client and server: %d and %d datagrams, of which every fourth was lost\n", nodes[0].sent, nodes[1].sent);
    /* Until it has acknowledged a notification, an address may be forged and receives one or two copies: losses could end the
     * observation. */
    nodes[0].loses = nodes[1].loses = 0;
    request = (ebbtide_request){server, EBBTIDE_GET, 1, 1, &ticks, NULL, 0, &seen, on_body, on_done};
    CHECK(ebbtide_endpoint_request(&nodes[0].endpoint, &request, &handle), EBBTIDE_OK);
    CHECK(wait_for(&seen, 1), 0);
    for (resources.ticks = 1; resources.ticks < 4; resources.ticks++) {
        CHECK(ebbtide_endpoint_changed(&nodes[1].endpoint, 1), EBBTIDE_OK);
        CHECK(wait_for(&seen, 1 + resources.ticks), 0);
        CHECK(seen.body[0], '0' + resources.ticks);
    }
    CHECK(ebbtide_endpoint_cancel(&nodes[0].endpoint, now_ms(), handle), EBBTIDE_OK);
    CHECK(wait_for(&seen, 5), 0);
    CHECK(seen.result, EBBTIDE_OK);
    CHECK(resources.refused > 0, 1);
    CHECK(strangers(&client), 0);
    close(nodes[0].socket);
    close(nodes[1].socket);
    return 0;
}
