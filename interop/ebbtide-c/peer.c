/* The adapter of Ebbtide's endpoint for C for the interoperability matrix; ../README.md describes it. The endpoint answers at once, sends
 * the options of `ebbtide_answer` only, and chooses blocks of 256 bytes: what needs more is "unsupported" or 4.04. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <ebbtide_endpoint.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#define UNSUPPORTED 127
#define LARGE (1u << 20)
#define CODE(class, detail) ((class) << 5 | (detail))

enum { FETCH = 5, PATCH = 6, IPATCH = 7 };
enum { IF_MATCH = 1, ETAG = 4, IF_NONE_MATCH = 5, URI_PATH = 11, URI_QUERY = 15, ACCEPT = 17 };
enum { TIME = 1, TIMES = 2 }; /* subjects */

static ebbtide_endpoint endpoint;
static int link_socket;
static uint8_t body[LARGE + 1];
static size_t body_length;

static uint64_t now_ms(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000 + (uint64_t)at.tv_nsec / 1000000;
}

static uint32_t draw(void *context) {
    uint32_t number = 0;
    (void)context;
    return getrandom(&number, sizeof number, 0) == sizeof number ? number : 4;
}

static void send_datagram(void *context, const ebbtide_address *to, const uint8_t *datagram, size_t length) {
    struct sockaddr_storage address = {0};
    (void)context;
    memcpy(&address, to->bytes, to->length);
    sendto(link_socket, datagram, length, 0, (struct sockaddr *)&address, to->length);
}

/* Takes what arrives until `until`, or until `*enough`. */
static void turn(uint64_t until, const int *enough) {
    uint64_t due;
    for (;;) {
        uint64_t now = now_ms();
        struct pollfd ready = {.fd = link_socket, .events = POLLIN};
        uint8_t datagram[1500];
        struct sockaddr_storage sender;
        socklen_t length = sizeof sender;
        ebbtide_address from = {0};
        ssize_t bytes;
        ebbtide_endpoint_poll(&endpoint, now, &due);
        if (*enough || now >= until) return;
        if (due > until) due = until;
        poll(&ready, 1, due > now ? (int)(due - now) : 0);
        bytes = recvfrom(link_socket, datagram, sizeof datagram, MSG_DONTWAIT, (struct sockaddr *)&sender, &length);
        if (bytes < 0) continue;
        from.length = (uint8_t)length;
        memcpy(from.bytes, &sender, length);
        ebbtide_endpoint_receive(&endpoint, now_ms(), &from, datagram, (size_t)bytes);
    }
}

/* The values of an option, joined. */
static const char *joined(const ebbtide_message *message, uint16_t number, char between) {
    static char text[512];
    size_t at = 0, index;
    const uint8_t *value;
    int length;
    for (index = 0; (length = ebbtide_message_option(message, number, index, &value)) >= 0; index++) {
        if (at + (size_t)length + 2 > sizeof text) break;
        if (index) text[at++] = between;
        memcpy(text + at, value, (size_t)length);
        at += (size_t)length;
    }
    text[at] = 0;
    return text;
}

/* Whether one of these options is the ETag 2a. */
static int has_tag(const ebbtide_message *message, uint16_t number) {
    const uint8_t *value;
    size_t index;
    int length;
    for (index = 0; (length = ebbtide_message_option(message, number, index, &value)) >= 0; index++)
        if (length == 1 && value[0] == 0x2a) return 1;
    return 0;
}

static int has(const ebbtide_message *message, uint16_t number) {
    const uint8_t *value;
    return ebbtide_message_option(message, number, 0, &value) >= 0;
}

static int take(void *context, const ebbtide_message *message, size_t offset) {
    (void)context;
    if (offset + message->length > LARGE) return CODE(4, 13);
    memcpy(body + offset, message->payload, message->length);
    body_length = offset + message->length;
    return 0;
}

/* So many bytes from `offset` of digits, or of one digit. */
static void fill(ebbtide_answer *answer, size_t offset, uint8_t *room, size_t room_length, size_t total, int digit) {
    size_t at;
    for (at = 0; at < room_length && offset + at < total; at++)
        room[at] = (uint8_t)('0' + (digit < 0 ? (int)((offset + at) % 10) : digit));
    answer->code = CODE(2, 5);
    answer->length = at;
    answer->total = total;
    answer->etag = (uint32_t)(1 + (digit < 0 ? 0 : digit));
}

static void say(ebbtide_answer *answer, uint8_t *room, size_t room_length, uint8_t code, const char *text) {
    size_t length = strlen(text) < room_length ? strlen(text) : room_length;
    memcpy(room, text, length);
    answer->code = code;
    answer->length = length;
}

static void state(void *context, uint8_t subject, uint8_t *room, size_t room_length, ebbtide_answer *answer) {
    char text[32];
    (void)context;
    snprintf(text, sizeof text, "%llu", (unsigned long long)(now_ms() / 250));
    if (subject == TIME) say(answer, room, room_length, CODE(2, 5), text);
    else fill(answer, 0, room, room_length, 3000, (int)(now_ms() / 500 % 10));
    answer->subject = subject;
}

static const char *between_spaces(const char *path) {
    static char text[516];
    snprintf(text, sizeof text, " %s ", path);
    return text;
}

static void answer(void *context, const ebbtide_message *message, size_t offset, uint8_t *room, size_t room_length, ebbtide_answer *answer) {
    static unsigned count;
    char text[32];
    char path[512];
    int is_get = message->code == EBBTIDE_GET;
    if (offset == 0 && message->length == 0) body_length = 0;
    snprintf(path, sizeof path, "%s", joined(message, URI_PATH, '/'));
    if (is_get && !strcmp(path, "test")) fill(answer, offset, room, room_length, 60, -1);
    else if (is_get && !strcmp(path, "medium")) fill(answer, offset, room, room_length, 10000, -1);
    else if (is_get && !strcmp(path, "large")) fill(answer, offset, room, room_length, LARGE, -1);
    else if (is_get && !strcmp(path, "a b")) say(answer, room, room_length, CODE(2, 5), "spaced");
    else if (is_get && !strcmp(path, "query")) say(answer, room, room_length, CODE(2, 5), joined(message, URI_QUERY, '&'));
    else if (is_get && !strcmp(path, "time")) state(context, TIME, room, room_length, answer);
    else if (is_get && !strcmp(path, "times")) {
        fill(answer, offset, room, room_length, 3000, (int)(now_ms() / 500 % 10));
        answer->subject = TIMES;
    } else if (is_get && !strcmp(path, ".well-known/core")) {
        const uint8_t *accepted;
        int length = ebbtide_message_option(message, ACCEPT, 0, &accepted);
        if (length >= 0 && (length != 1 || *accepted != 40)) answer->code = CODE(4, 6);
        else {
            say(answer, room, room_length, CODE(2, 5), "</test>,</medium>,</large>,</echo>,</length>,</count>,</time>;obs,</times>;obs");
            answer->has_format = 1;
            answer->content_format = 40;
        }
    } else if (!strcmp(path, "echo") && message->code == EBBTIDE_DELETE) answer->code = CODE(2, 2);
    else if (!strcmp(path, "echo") && !is_get) {
        answer->code = message->code == FETCH ? CODE(2, 5) : CODE(2, 4);
        if (offset > body_length) return;
        answer->length = body_length - offset < room_length ? body_length - offset : room_length;
        answer->total = body_length;
        answer->etag = 1;
        memcpy(room, body + offset, answer->length);
    } else if (!strcmp(path, "length") && message->code == EBBTIDE_PUT) {
        snprintf(text, sizeof text, "%zu", body_length);
        say(answer, room, room_length, CODE(2, 4), text);
    } else if (!strcmp(path, "count") && message->code == EBBTIDE_POST) {
        snprintf(text, sizeof text, "%u", ++count);
        say(answer, room, room_length, CODE(2, 4), text);
    } else if (!strcmp(path, "tagged")) {
        int fails = has(message, IF_NONE_MATCH) || (has(message, IF_MATCH) && !has_tag(message, IF_MATCH));
        const uint8_t *accepted;
        if (!is_get) answer->code = fails ? CODE(4, 12) : CODE(2, 4);
        else if (ebbtide_message_option(message, ACCEPT, 0, &accepted) > 0) answer->code = CODE(4, 6);
        else if (has_tag(message, ETAG)) answer->code = CODE(2, 3);
        else say(answer, room, room_length, CODE(2, 5), "tagged");
        answer->etag = 0x2a;
    }
    if (answer->code == CODE(4, 4) && strstr(" test medium large query time times echo length count tagged .well-known/core ", between_spaces(path)))
        answer->code = CODE(4, 5);
}

static void serve(void) {
    const ebbtide_handler handler = {NULL, take, answer, state};
    const int never = 0;
    uint64_t ticks;
    ebbtide_endpoint_serve(&endpoint, &handler);
    puts("ready");
    for (ticks = 0;; ticks++) {
        turn(now_ms() + 250, &never);
        ebbtide_endpoint_changed(&endpoint, TIME);
        if (ticks % 2) ebbtide_endpoint_changed(&endpoint, TIMES);
    }
}

/* An answer so far. */
static struct { char options[512]; int answers, wanted, is_over; } got;

static int on_body(void *context, const ebbtide_message *message, size_t offset) {
    static const uint16_t NUMBERS[] = {ETAG, 6, 12, 14, 23, 27, 28, 60};
    const uint8_t *value;
    size_t at = 0, each;
    int length, byte;
    (void)context;
    if (offset + message->length > LARGE) return 1;
    memcpy(body + offset, message->payload, message->length);
    body_length = offset + message->length;
    if (offset > 0) return 0; /* the options of the first block stand for the answer */
    for (each = 0; each < sizeof NUMBERS / sizeof *NUMBERS; each++) {
        if ((length = ebbtide_message_option(message, NUMBERS[each], 0, &value)) < 0 || length > 8) continue;
        at += (size_t)sprintf(got.options + at, "%s%u:", at ? "," : "", NUMBERS[each]);
        for (byte = 0; byte < length; byte++) at += (size_t)sprintf(got.options + at, "%02x", value[byte]);
    }
    return 0;
}

static void on_done(void *context, int result) {
    size_t at;
    (void)context;
    if (got.is_over) return;
    if (result <= 0) {
        if (result < 0) printf("error %d\n", result);
        got.is_over = 1;
        return;
    }
    printf("%d.%02d %s ", result >> 5, result & 31, *got.options ? got.options : "-");
    for (at = 0; at < body_length; at++) printf("%02x", body[at]);
    puts(body_length ? "" : "-");
    body_length = 0;
    *got.options = 0;
    got.is_over = ++got.answers >= got.wanted;
}

static size_t from_hex(const char *text, uint8_t *out) {
    size_t length = 0;
    unsigned byte;
    while (sscanf(text + 2 * length, "%2x", &byte) == 1) out[length++] = (uint8_t)byte;
    return length;
}

/* Adds the parts of `text`, percent-decoded, as options with this number. */
static void add_parts(ebbtide_option *options, uint16_t *count, uint16_t number, char *text, const char *between) {
    char *part;
    for (part = strtok(text, between); part && *count < 8; part = strtok(NULL, between)) {
        char *to = part, *from = part;
        unsigned byte;
        for (; *from; from++)
            if (*from == '%' && sscanf(from + 1, "%2x", &byte) == 1) { *to++ = (char)byte; from += 2; } else *to++ = *from;
        options[(*count)++] = (ebbtide_option){number, (uint16_t)(to - part), (const uint8_t *)part};
    }
}

static const char *ask_one(const ebbtide_address *server, char *line) {
    static const char *const METHODS[] = {"", "GET", "POST", "PUT", "DELETE", "FETCH", "PATCH", "IPATCH"};
    static uint8_t upload[LARGE], values[8][256];
    ebbtide_option options[8];
    ebbtide_request request = {.to = *server, .options = options, .body = upload, .on_body = on_body, .on_done = on_done};
    char *words[24], *query, *word = strtok(line, " \n");
    double wait = 8;
    size_t count = 0, at;
    uint32_t handle;
    for (; word && count < 24; word = strtok(NULL, " \n")) words[count++] = word;
    if (count < 2) return "such a line";
    for (request.code = 1; request.code < 8 && strcmp(words[0], METHODS[request.code]); request.code++) {}
    if (request.code > IPATCH) return "no call for pings";
    memset(&got, 0, sizeof got);
    got.wanted = 1;
    body_length = 0;
    if ((query = strchr(words[1], '?'))) *query++ = 0;
    add_parts(options, &request.option_count, URI_PATH, words[1], "/");
    if (query) add_parts(options, &request.option_count, URI_QUERY, query, "&");
    for (at = 2; at < count; at++) {
        unsigned number;
        if (!strncmp(words[at], "payload=", 8)) request.body_length = from_hex(words[at] + 8, upload);
        else if (sscanf(words[at], "digits=%u", &number) == 1 && number <= LARGE)
            for (request.body_length = 0; request.body_length < number; request.body_length++)
                upload[request.body_length] = (uint8_t)('0' + request.body_length % 10);
        else if (sscanf(words[at], "wait=%lf", &wait) == 1) continue;
        else if (sscanf(words[at], "observe=%d", &got.wanted) == 1) request.observe = 1;
        else if (sscanf(words[at], "opt=%u:", &number) == 1 && request.option_count < 8) {
            uint8_t *value = values[request.option_count];
            uint16_t length = (uint16_t)from_hex(strchr(words[at], ':') + 1, value);
            options[request.option_count++] = (ebbtide_option){(uint16_t)number, length, value};
        } else return "no such choice";
    }
    if (ebbtide_endpoint_request(&endpoint, &request, &handle) != EBBTIDE_OK) return "no such request";
    turn(now_ms() + (uint64_t)(wait * 1000), &got.is_over);
    if (!got.is_over) puts("error no answer in time");
    got.is_over = 1;
    ebbtide_endpoint_cancel(&endpoint, now_ms(), handle);
    if (request.observe) {
        const int never = 0;
        turn(now_ms() + 100, &never); /* the deregistration leaves */
    }
    return NULL;
}

static int ask(const ebbtide_address *server) {
    static char line[2 * LARGE + 512];
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        const char *missing = ask_one(server, line);
        if (missing) printf("unsupported %s\n", missing);
        puts(".");
    }
    return 0;
}

int main(void) {
    const ebbtide_settings quick = {500, 8, 1};
    const ebbtide_io io = {NULL, send_datagram, draw};
    const char *role = getenv("INTEROP_ROLE"), *scheme = getenv("INTEROP_SCHEME"), *host = getenv("INTEROP_HOST"), *port = getenv("INTEROP_PORT");
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    ebbtide_address address = {0};
    struct sockaddr *at = (struct sockaddr *)&v4;
    if (!role || !scheme || !host || !port || strcmp(scheme, "coap")) return UNSUPPORTED;
    setvbuf(stdout, NULL, _IOLBF, 0);
    v4.sin_port = v6.sin6_port = htons((uint16_t)atoi(port));
    address.length = sizeof v4;
    if (inet_pton(AF_INET, host, &v4.sin_addr) != 1) {
        if (inet_pton(AF_INET6, host, &v6.sin6_addr) != 1) return UNSUPPORTED;
        at = (struct sockaddr *)&v6;
        address.length = sizeof v6;
    }
    memcpy(address.bytes, at, address.length);
    link_socket = socket(at->sa_family, SOCK_DGRAM, 0);
    if (link_socket < 0 || ebbtide_endpoint_init(&endpoint, sizeof endpoint, &io, &quick) != EBBTIDE_OK) return 1;
    if (strcmp(role, "server")) return ask(&address);
    if (bind(link_socket, at, address.length)) return perror(host), 1;
    serve();
    return 0;
}
