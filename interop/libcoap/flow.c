/* libcoap under the workload of the scenario nb-iot: clients that each make a number of requests,
 * one after the other, and the server that answers them.
 *
 *   flow server ADDRESS
 *   flow client ADDRESS CLIENTS EXCHANGES [ACK_TIMEOUT | ebbtide]
 *                                    prints each client's flow completion time in seconds
 *
 * With `ebbtide`, ebbtide-c chooses ACK_TIMEOUT for each exchange; libcoap doubles it from there. It does not
 * tell how often it has retransmitted, but that follows from the time. It refuses less than a second.
 *
 * As in the scenario: MAX_RETRANSMIT 20, no token, a path of five bytes, a response of sixty. Each
 * client is a process of its own. libcoap's back-off has no bound of 60 s. */
#include <coap3/coap.h>
#include <ebbtide.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const uint8_t text[] = "012345678901234567890123456789012345678901234567890123456789";
static int waiting, failed;

static void get_value(coap_resource_t *resource, coap_session_t *session,
                      const coap_pdu_t *request, const coap_string_t *query,
                      coap_pdu_t *response) {
    uint8_t format[2];
    (void)resource, (void)session, (void)request, (void)query;
    coap_pdu_set_code(response, COAP_RESPONSE_CODE_CONTENT);
    coap_add_option(response, COAP_OPTION_CONTENT_FORMAT,
                    coap_encode_var_safe(format, sizeof format, COAP_MEDIATYPE_TEXT_PLAIN), format);
    coap_add_data(response, sizeof text - 1, text);
}

static coap_response_t on_response(coap_session_t *session, const coap_pdu_t *sent,
                                   const coap_pdu_t *received, const coap_mid_t id) {
    size_t length;
    const uint8_t *data;
    (void)session, (void)id;
    if (!sent) return COAP_RESPONSE_OK; /* to a copy; the first one was taken */
    if (!coap_get_data(received, &length, &data) || length != sizeof text - 1) failed++;
    waiting = 0;
    return COAP_RESPONSE_OK;
}

static void on_nack(coap_session_t *session, const coap_pdu_t *sent, const coap_nack_reason_t why,
                    const coap_mid_t id) {
    (void)session, (void)sent, (void)why, (void)id;
    failed++;
    waiting = 0;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static int serve(coap_address_t *self) {
    coap_context_t *context = coap_new_context(NULL);
    coap_resource_t *resource = coap_resource_init(coap_make_str_const("value"), 0);
    coap_register_request_handler(resource, COAP_REQUEST_GET, get_value);
    coap_add_resource(context, resource);
    if (!context || !coap_new_endpoint(context, self, COAP_PROTO_UDP)) return 1;
    while (coap_io_process(context, COAP_IO_WAIT) >= 0) continue;
    return 1;
}

/* An exchange of a session whose timeouts come from ebbtide-c. */
static ebbtide_control control;
static ebbtide_exchange exchange;

static void begin(coap_session_t *session) {
    uint32_t timeout, random;
    coap_prng((void *)&random, sizeof random);
    if (ebbtide_on_transmit(&control, &exchange, random, &timeout)) abort();
    if (timeout < 1000) timeout = 1000;
    if (timeout > 65535000) timeout = 65535000;
    coap_session_set_ack_timeout(session, (coap_fixed_point_t){timeout / 1000, timeout % 1000});
}

static void end(coap_session_t *session, double elapsed) {
    coap_fixed_point_t first = coap_session_get_ack_timeout(session);
    double timeout = first.integer_part + first.fractional_part / 1000.0, until = timeout;
    uint32_t ignored;
    for (; until < elapsed; until += timeout *= 2)
        if (ebbtide_on_expire(&control, &exchange) || ebbtide_on_transmit(&control, &exchange, 0, &ignored)) break;
    ebbtide_on_feedback(&control, &exchange, (uint32_t)(elapsed * 1000));
    ebbtide_on_close(&control, &exchange, EBBTIDE_ACKNOWLEDGED);
}

static int ask(coap_address_t *server, int exchanges, int ack_timeout) {
    coap_context_t *context = coap_new_context(NULL);
    coap_session_t *session = coap_new_client_session(context, NULL, server, COAP_PROTO_UDP);
    if (!session) return 1;
    coap_session_set_max_retransmit(session, 20);
    if (ack_timeout) {
        coap_session_set_ack_timeout(session, (coap_fixed_point_t){(uint16_t)ack_timeout, 0});
    } else {
        ebbtide_settings settings = {2000, 20, 1};
        if (ebbtide_init(&control, sizeof control, &settings)) return 1;
        /* The control spreads its timeouts itself. */
        coap_session_set_ack_random_factor(session, (coap_fixed_point_t){1, 0});
    }
    coap_register_response_handler(context, on_response);
    coap_register_nack_handler(context, on_nack);
    double began = seconds();
    for (int i = 0; i < exchanges; i++) {
        coap_pdu_t *request = coap_pdu_init(COAP_MESSAGE_CON, COAP_REQUEST_CODE_GET,
                                            coap_new_message_id(session), 128);
        coap_add_option(request, COAP_OPTION_URI_PATH, 5, (const uint8_t *)"value");
        waiting = 1;
        double sent = seconds();
        if (!ack_timeout) begin(session);
        if (coap_send(session, request) == COAP_INVALID_MID) return 1;
        while (waiting)
            if (coap_io_process(context, COAP_IO_WAIT) < 0) return 1;
        if (!ack_timeout) end(session, seconds() - sent);
    }
    /* One write per line: the lines of processes do not mix. */
    dprintf(STDOUT_FILENO, "%.6f\n", seconds() - began);
    return failed != 0;
}

int main(int argc, char **argv) {
    coap_address_t address;
    if (argc < 3) return 2;
    coap_startup();
    coap_set_log_level(LOG_ERR);
    coap_address_init(&address);
    address.size = sizeof address.addr.sin;
    address.addr.sin.sin_family = AF_INET;
    address.addr.sin.sin_port = htons(COAP_DEFAULT_PORT);
    if (!inet_pton(AF_INET, argv[2], &address.addr.sin.sin_addr)) return 2;
    if (!strcmp(argv[1], "server")) return serve(&address);
    int clients = argc > 3 ? atoi(argv[3]) : 1, exchanges = argc > 4 ? atoi(argv[4]) : 50;
    for (int i = 0; i < clients; i++)
        if (fork() == 0) return ask(&address, exchanges, argc > 5 ? atoi(argv[5]) : 2); /* "ebbtide" is 0 */
    int status, all = 0;
    while (wait(&status) > 0) all |= status;
    return all != 0;
}
