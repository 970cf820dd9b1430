/* The adapter of libcoap for the interoperability matrix; ../README.md describes it.
 *
 *     matrix server PORT HOST [coap|coap+tcp|coaps]
 *     matrix ask URI
 *
 * It is built for libcoap 4.3.1 and 4.3.4; only the latter has Q-Block and OSCORE.
 */
#include <arpa/inet.h>
#include <coap3/coap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PSK_IDENTITY "matrix"
#define PSK_KEY "sesame-of-interop"
#define UNSUPPORTED 127
#ifdef COAP_BLOCK_TRY_Q_BLOCK
#define EXTENDED 1
#else
#define EXTENDED 0
#define COAP_BLOCK_TRY_Q_BLOCK 0
#endif

/* The settings of the runner. */
static const char *folder_of_certificates, *with_q_block, *with_oscore;

static uint32_t block_mode(void) {
    return COAP_BLOCK_USE_LIBCOAP | COAP_BLOCK_SINGLE_BODY | (with_q_block ? COAP_BLOCK_TRY_Q_BLOCK : 0);
}

/* Its own certificate, and the authority of the others. */
static coap_dtls_pki_t certificates(void) {
    static char authority[1024], own[1024], key[1024];
    snprintf(authority, sizeof authority, "%s/authority.pem", folder_of_certificates);
    snprintf(own, sizeof own, "%s/peer.crt", folder_of_certificates);
    snprintf(key, sizeof key, "%s/peer.key", folder_of_certificates);
    coap_dtls_pki_t setup = {.version = COAP_DTLS_PKI_SETUP_VERSION, .verify_peer_cert = 1, .check_common_ca = 1};
    setup.pki_key.key_type = COAP_PKI_KEY_PEM;
    setup.pki_key.key.pem.ca_file = authority;
    setup.pki_key.key.pem.public_cert = own;
    setup.pki_key.key.pem.private_key = key;
    return setup;
}

#if EXTENDED
/* ../README.md gives the security context. */
static coap_oscore_conf_t *oscore(const char *sender, const char *recipient) {
    static char text[512];
    int length = snprintf(text, sizeof text,
                          "master_secret,hex,\"0102030405060708090a0b0c0d0e0f10\"\n"
                          "master_salt,hex,\"9e7ca92223786340\"\n"
                          "sender_id,ascii,\"%s\"\nrecipient_id,ascii,\"%s\"\nrfc8613_b_2,bool,%s\n",
                          sender, recipient, strcmp(with_oscore, "renewed") ? "false" : "true");
    coap_str_const_t held = {.length = (size_t)length, .s = (const uint8_t *)text};
    return coap_new_oscore_conf(held, NULL, NULL, 0);
}
#endif

static uint8_t *digits(size_t length) {
    uint8_t *body = malloc(length + 1);
    for (size_t n = 0; n < length; n++) body[n] = (uint8_t)('0' + n % 10);
    return body;
}

static coap_address_t address(const char *host, int port) {
    coap_address_t to;
    coap_address_init(&to);
    if (strchr(host, ':')) {
        to.addr.sin6.sin6_family = AF_INET6;
        to.addr.sin6.sin6_port = htons((uint16_t)port);
        inet_pton(AF_INET6, host, &to.addr.sin6.sin6_addr);
        to.size = sizeof to.addr.sin6;
    } else {
        to.addr.sin.sin_family = AF_INET;
        to.addr.sin.sin_port = htons((uint16_t)port);
        inet_pton(AF_INET, host, &to.addr.sin.sin_addr);
        to.size = sizeof to.addr.sin;
    }
    return to;
}

static coap_proto_t protocol(const char *scheme) {
    if (!strcmp(scheme, "coap+tcp")) return COAP_PROTO_TCP;
    if (!strcmp(scheme, "coaps+tcp")) return COAP_PROTO_TLS;
    if (!strcmp(scheme, "coaps")) return COAP_PROTO_DTLS;
    return COAP_PROTO_UDP;
}

/* ---- server ---- */

static uint8_t *body_of_large, *body_of_medium;
static unsigned counted, number;

static void release(coap_session_t *session, void *body) {
    (void)session;
    free(body);
}

static void answer(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request,
                   const coap_string_t *query, coap_pdu_t *response, int code, const void *data, size_t length) {
    uint8_t *copy = malloc(length + 1);
    memcpy(copy, data, length);
    coap_pdu_set_code(response, code);
    coap_add_data_large_response(resource, session, request, response, query, COAP_MEDIATYPE_TEXT_PLAIN, -1, 0,
                                 length, copy, release, copy);
}

#define HANDLER(name)                                                                                          \
    static void name(coap_resource_t *r, coap_session_t *s, const coap_pdu_t *q, const coap_string_t *query,   \
                     coap_pdu_t *p)
#define CONTENT COAP_RESPONSE_CODE_CONTENT
#define CHANGED COAP_RESPONSE_CODE_CHANGED

HANDLER(get_test) { answer(r, s, q, query, p, CONTENT, body_of_large, 60); }
HANDLER(get_large) { answer(r, s, q, query, p, CONTENT, body_of_large, 1 << 20); }
HANDLER(get_medium) { answer(r, s, q, query, p, CONTENT, body_of_medium, 10000); }
HANDLER(get_spaced) { answer(r, s, q, query, p, CONTENT, "spaced", 6); }
HANDLER(delete_echo) { answer(r, s, q, query, p, COAP_RESPONSE_CODE_DELETED, "", 0); }

HANDLER(echo) {
    size_t length = 0, offset, total;
    const uint8_t *data = NULL;
    coap_get_data_large(q, &length, &data, &offset, &total);
    int fetch = coap_pdu_get_code(q) == COAP_REQUEST_CODE_FETCH;
    answer(r, s, q, query, p, fetch ? CONTENT : CHANGED, data ? (const void *)data : "", length);
}

HANDLER(length) {
    size_t length = 0, offset, total;
    const uint8_t *data = NULL;
    char text[32];
    coap_get_data_large(q, &length, &data, &offset, &total);
    answer(r, s, q, query, p, CHANGED, text, (size_t)sprintf(text, "%zu", length));
}

HANDLER(count) {
    char text[32];
    answer(r, s, q, query, p, CHANGED, text, (size_t)sprintf(text, "%u", ++counted));
}

HANDLER(get_query) {
    answer(r, s, q, query, p, CONTENT, query ? (const char *)query->s : "", query ? query->length : 0);
}

HANDLER(get_separate) {
    coap_bin_const_t token = coap_pdu_get_token(q);
    coap_async_t *async = coap_find_async(s, token);
    if (!async) {
        coap_register_async(s, q, COAP_TICKS_PER_SECOND / 2);
        return;
    }
    answer(r, s, q, query, p, CONTENT, "that took a while", 17);
}

#define TAG 0x2a

static int has_tag(const coap_pdu_t *request, uint16_t number) {
    coap_opt_iterator_t options;
    coap_opt_t *option = coap_check_option(request, number, &options);
    return option && coap_opt_length(option) == 1 && *coap_opt_value(option) == TAG;
}

HANDLER(get_tagged) {
    (void)r, (void)s, (void)query;
    coap_opt_iterator_t options;
    coap_opt_t *accepted = coap_check_option(q, COAP_OPTION_ACCEPT, &options);
    uint8_t tag = TAG;
    if (accepted && coap_decode_var_bytes(coap_opt_value(accepted), coap_opt_length(accepted)) != 0) {
        coap_pdu_set_code(p, COAP_RESPONSE_CODE_NOT_ACCEPTABLE);
    } else if (has_tag(q, COAP_OPTION_ETAG)) {
        coap_pdu_set_code(p, COAP_RESPONSE_CODE_VALID);
        coap_add_option(p, COAP_OPTION_ETAG, 1, &tag);
    } else {
        coap_pdu_set_code(p, CONTENT);
        coap_add_option(p, COAP_OPTION_ETAG, 1, &tag);
        coap_add_data(p, 6, (const uint8_t *)"tagged");
    }
}

HANDLER(put_tagged) {
    (void)r, (void)s, (void)query;
    coap_opt_iterator_t options;
    int refused = coap_check_option(q, COAP_OPTION_IF_NONE_MATCH, &options) ||
                  (coap_check_option(q, COAP_OPTION_IF_MATCH, &options) && !has_tag(q, COAP_OPTION_IF_MATCH));
    coap_pdu_set_code(p, refused ? COAP_RESPONSE_CODE_PRECONDITION_FAILED : CHANGED);
}

HANDLER(get_fresh) {
    coap_opt_iterator_t options;
    if (coap_check_option(q, COAP_OPTION_ECHO, &options)) {
        answer(r, s, q, query, p, CONTENT, "fresh", 5);
        return;
    }
    coap_pdu_set_code(p, COAP_RESPONSE_CODE_UNAUTHORIZED);
    coap_add_option(p, COAP_OPTION_ECHO, 8, (const uint8_t *)"echo-me!");
}

HANDLER(get_time) {
    char text[32];
    answer(r, s, q, query, p, CONTENT, text, (size_t)sprintf(text, "%u", number));
}

HANDLER(get_times) {
    uint8_t text[3000];
    memset(text, '0' + (int)(number / 2 % 10), sizeof text);
    answer(r, s, q, query, p, CONTENT, text, sizeof text);
}

static coap_resource_t *resource(coap_context_t *context, const char *path, coap_request_t method,
                                 coap_method_handler_t handler) {
    coap_resource_t *made = coap_resource_init(coap_make_str_const(path), 0);
    coap_register_request_handler(made, method, handler);
    coap_add_resource(context, made);
    return made;
}

static int serve(int port, const char *host, const char *scheme) {
    coap_context_t *context = coap_new_context(NULL);
    coap_address_t at = address(host, port);
    coap_context_set_block_mode(context, block_mode());
#if EXTENDED
    if (with_oscore && !coap_context_oscore_server(context, oscore("server", "client"))) return UNSUPPORTED;
#endif
    if (folder_of_certificates) {
        coap_dtls_pki_t setup = certificates();
        if (!coap_context_set_pki(context, &setup)) return 3;
    } else if (!strcmp(scheme, "coaps")) {
        coap_dtls_spsk_t setup = {.version = COAP_DTLS_SPSK_SETUP_VERSION};
        setup.psk_info.key.s = (const uint8_t *)PSK_KEY;
        setup.psk_info.key.length = strlen(PSK_KEY);
        if (!coap_context_set_psk2(context, &setup)) return 3;
    }
    body_of_large = digits(1 << 20);
    body_of_medium = digits(10000);
    resource(context, "test", COAP_REQUEST_GET, get_test);
    resource(context, "large", COAP_REQUEST_GET, get_large);
    resource(context, "medium", COAP_REQUEST_GET, get_medium);
    resource(context, "a%20b", COAP_REQUEST_GET, get_spaced);
    resource(context, "query", COAP_REQUEST_GET, get_query);
    resource(context, "separate", COAP_REQUEST_GET, get_separate);
    resource(context, "length", COAP_REQUEST_PUT, length);
    resource(context, "count", COAP_REQUEST_POST, count);
    coap_resource_t *both = resource(context, "echo", COAP_REQUEST_PUT, echo);
    coap_register_request_handler(both, COAP_REQUEST_POST, echo);
    coap_register_request_handler(both, COAP_REQUEST_FETCH, echo);
    coap_register_request_handler(both, COAP_REQUEST_PATCH, echo);
    coap_register_request_handler(both, COAP_REQUEST_IPATCH, echo);
    coap_register_request_handler(both, COAP_REQUEST_DELETE, delete_echo);
    coap_resource_t *tagged = resource(context, "tagged", COAP_REQUEST_GET, get_tagged);
    coap_register_request_handler(tagged, COAP_REQUEST_PUT, put_tagged);
    resource(context, "fresh", COAP_REQUEST_GET, get_fresh);
    coap_resource_t *time = resource(context, "time", COAP_REQUEST_GET, get_time);
    coap_resource_t *times = resource(context, "times", COAP_REQUEST_GET, get_times);
    coap_resource_set_get_observable(time, 1);
    coap_resource_set_get_observable(times, 1);
    coap_resource_set_mode(time, COAP_RESOURCE_FLAGS_NOTIFY_CON);
    if (!coap_new_endpoint(context, &at, protocol(scheme))) return 3;
    puts("ready");
    fflush(stdout);
    coap_tick_t last, now;
    coap_ticks(&last);
    for (;;) {
        coap_io_process(context, 50);
        coap_ticks(&now);
        if (now - last >= COAP_TICKS_PER_SECOND / 4) {
            last = now;
            number++;
            coap_resource_notify_observers(time, NULL);
            if (number % 2 == 0) coap_resource_notify_observers(times, NULL);
        }
    }
}

/* ---- client ---- */

static int wanted, over, pinging;

static void hexadecimal(const uint8_t *data, size_t length) {
    for (size_t n = 0; n < length; n++) printf("%02x", data[n]);
}

static coap_response_t got(coap_session_t *session, const coap_pdu_t *sent, const coap_pdu_t *received, coap_mid_t id) {
    (void)session, (void)sent, (void)id;
    coap_opt_iterator_t options;
    coap_opt_t *option;
    size_t length = 0, offset = 0, total = 0;
    const uint8_t *data = NULL;
    coap_pdu_code_t code = coap_pdu_get_code(received);
    if (over) return COAP_RESPONSE_OK;
    printf("%d.%02d ", code >> 5, code & 31);
    coap_option_iterator_init(received, &options, COAP_OPT_ALL);
    int any = 0;
    while ((option = coap_option_next(&options))) {
        printf("%s%d:", any++ ? "," : "", options.number);
        hexadecimal(coap_opt_value(option), coap_opt_length(option));
    }
    coap_get_data_large(received, &length, &data, &offset, &total);
    printf(any ? " " : "- ");
    hexadecimal(data, length);
    puts(length ? "" : "-");
    over = --wanted <= 0 || code >> 5 != 2;
    return COAP_RESPONSE_OK;
}

static void failed(coap_session_t *session, const coap_pdu_t *sent, const coap_nack_reason_t reason, const coap_mid_t id) {
    (void)session, (void)sent, (void)id;
    if (over) return;
    if (reason == COAP_NACK_RST && pinging) puts("rst - -");
    else printf("error %s\n", reason == COAP_NACK_RST ? "reset" : reason == COAP_NACK_TOO_MANY_RETRIES ? "gave up" : "not delivered");
    over = 1;
}

static void answered_ping(coap_session_t *session, const coap_pdu_t *received, const coap_mid_t id) {
    (void)session, (void)received, (void)id;
    if (!over) puts("rst - -");
    over = 1;
}

static size_t decoded(const char *text, size_t length, uint8_t *out) {
    size_t n = 0;
    for (size_t at = 0; at < length; at++) {
        unsigned byte;
        if (text[at] == '%' && sscanf(text + at + 1, "%2x", &byte) == 1) out[n++] = (uint8_t)byte, at += 2;
        else out[n++] = (uint8_t)text[at];
    }
    return n;
}

static size_t from_hexadecimal(const char *text, uint8_t *out) {
    size_t n = 0;
    unsigned byte;
    for (; sscanf(text, "%2x", &byte) == 1; text += 2) out[n++] = (uint8_t)byte;
    return n;
}

static void split(coap_optlist_t **options, uint16_t number, const char *text, char separator) {
    uint8_t part[1024];
    while (*text) {
        const char *end = strchrnul(text, separator);
        coap_insert_optlist(options, coap_new_optlist(number, decoded(text, (size_t)(end - text), part), part));
        text = *end ? end + 1 : end;
    }
}

static const struct { const char *name; coap_pdu_code_t code; } METHODS[] = {
    {"GET", COAP_REQUEST_CODE_GET},     {"POST", COAP_REQUEST_CODE_POST},   {"PUT", COAP_REQUEST_CODE_PUT},
    {"DELETE", COAP_REQUEST_CODE_DELETE}, {"FETCH", COAP_REQUEST_CODE_FETCH}, {"PATCH", COAP_REQUEST_CODE_PATCH},
    {"IPATCH", COAP_REQUEST_CODE_IPATCH}, {NULL, COAP_EMPTY_CODE}};

static void one(coap_context_t *context, coap_session_t *session, char *line) {
    char *method = strtok(line, " \n"), *path = strtok(NULL, " \n"), *word;
    coap_optlist_t *options = NULL;
    uint8_t *payload = NULL, token[8], buffer[64];
    size_t length = 0, token_length;
    int confirmable = 1, block = 0, observe = 0, at = 0;
    double wait = 8;
    over = 0, wanted = 1, pinging = !strcmp(method, "PING");
    if (pinging) {
        coap_session_send_ping(session);
    } else {
        char *query = strchr(path, '?');
        if (query) *query++ = 0;
        split(&options, COAP_OPTION_URI_PATH, path + 1, '/');
        if (query) split(&options, COAP_OPTION_URI_QUERY, query, '&');
        while ((word = strtok(NULL, " \n"))) {
            uint8_t value[1024];
            int number, skip;
            if (!strcmp(word, "non")) confirmable = 0;
            else if (sscanf(word, "digits=%zu", &length) == 1) payload = digits(length);
            else if (!strncmp(word, "payload=", 8)) {
                payload = malloc(strlen(word));
                length = from_hexadecimal(word + 8, payload);
            } else if (sscanf(word, "opt=%d:%n", &number, &skip) == 1)
                coap_insert_optlist(&options, coap_new_optlist((uint16_t)number, from_hexadecimal(word + skip, value), value));
            else if (sscanf(word, "observe=%d", &observe) == 1) wanted = observe;
            else if (sscanf(word, "wait=%lf", &wait) == 1 || sscanf(word, "block=%d", &block) == 1) continue;
        }
        while (METHODS[at].name && strcmp(METHODS[at].name, method)) at++;
        if (observe)
            coap_insert_optlist(&options, coap_new_optlist(COAP_OPTION_OBSERVE, 0, NULL));
        if (block) {
            unsigned szx = (unsigned)(ffs(block) - 5);
            size_t size = coap_encode_var_safe(buffer, sizeof buffer, szx);
            coap_insert_optlist(&options, coap_new_optlist(payload ? COAP_OPTION_BLOCK1 : COAP_OPTION_BLOCK2, size, buffer));
        }
        coap_pdu_t *pdu = coap_pdu_init(confirmable ? COAP_MESSAGE_CON : COAP_MESSAGE_NON, METHODS[at].code,
                                        coap_new_message_id(session), coap_session_max_pdu_size(session));
        coap_session_new_token(session, &token_length, token);
        coap_add_token(pdu, token_length, token);
        coap_add_optlist_pdu(pdu, &options);
        if (payload) coap_add_data_large_request(session, pdu, length, payload, release, payload);
        if (coap_send(session, pdu) == COAP_INVALID_MID) {
            puts("error not sent");
            over = 1;
        }
    }
    coap_tick_t start, now;
    coap_ticks(&start);
    do {
        coap_io_process(context, 20);
        coap_ticks(&now);
    } while (!over && now - start < (coap_tick_t)(wait * COAP_TICKS_PER_SECOND));
    if (!over) puts("error no answer");
    over = 1;
    if (observe) {
        coap_binary_t name = {.length = token_length, .s = token};
        coap_cancel_observe(session, &name, COAP_MESSAGE_CON);
        for (int n = 0; n < 10; n++) coap_io_process(context, 20);
    }
    coap_delete_optlist(options);
    puts(".");
    fflush(stdout);
}

static int ask(const char *uri) {
    char scheme[16], host[64];
    int port;
    if (sscanf(uri, "%15[^:]://[%63[^]]]:%d", scheme, host, &port) != 3 &&
        sscanf(uri, "%15[^:]://%63[^:]:%d", scheme, host, &port) != 3)
        return 2;
    coap_context_t *context = coap_new_context(NULL);
    coap_context_set_block_mode(context, block_mode());
    coap_address_t to = address(host, port);
    coap_session_t *session;
    if (folder_of_certificates) {
        coap_dtls_pki_t setup = certificates();
        session = coap_new_client_session_pki(context, NULL, &to, protocol(scheme), &setup);
#if EXTENDED
    } else if (with_oscore) {
        session = coap_new_client_session_oscore(context, NULL, &to, COAP_PROTO_UDP, oscore("client", "server"));
#endif
    } else if (!strcmp(scheme, "coaps")) {
        coap_dtls_cpsk_t setup = {.version = COAP_DTLS_CPSK_SETUP_VERSION};
        setup.psk_info.identity.s = (const uint8_t *)PSK_IDENTITY;
        setup.psk_info.identity.length = strlen(PSK_IDENTITY);
        setup.psk_info.key.s = (const uint8_t *)PSK_KEY;
        setup.psk_info.key.length = strlen(PSK_KEY);
        session = coap_new_client_session_psk2(context, NULL, &to, COAP_PROTO_DTLS, &setup);
    } else session = coap_new_client_session(context, NULL, &to, protocol(scheme));
    if (!session) return 3;
    coap_session_set_ack_timeout(session, (coap_fixed_point_t){0, 500});
    coap_session_set_max_retransmit(session, 8);
    coap_register_response_handler(context, got);
    coap_register_nack_handler(context, failed);
    coap_register_pong_handler(context, answered_ping);
    puts("ready");
    fflush(stdout);
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) one(context, session, line);
    coap_session_release(session);
    coap_free_context(context);
    return 0;
}

int main(int argc, char **argv) {
    coap_startup();
    coap_set_log_level((coap_log_t)0);
    folder_of_certificates = getenv("INTEROP_CERTIFICATES");
    with_q_block = getenv("INTEROP_Q_BLOCK");
    with_oscore = getenv("INTEROP_OSCORE");
    if (argc > 3 && !strcmp(argv[1], "server")) return serve(atoi(argv[2]), argv[3], argc > 4 ? argv[4] : "coap");
    if (argc > 2 && !strcmp(argv[1], "ask")) return ask(argv[2]);
    fprintf(stderr, "matrix server PORT HOST [SCHEME] | ask URI\n");
    return 2;
}
