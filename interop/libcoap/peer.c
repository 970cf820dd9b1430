/* libcoap as an application has it: a server with one resource of sixty bytes, answered on the
 * acknowledgement, and a client that asks for it, one request after the other.
 *
 *   peer server PORT
 *   peer bench PORT SECONDS        prints requests per second */
#include <coap3/coap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint8_t text[] = "012345678901234567890123456789012345678901234567890123456789";
static unsigned long answered;
static int waiting;

static void get_test(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request,
                     const coap_string_t *query, coap_pdu_t *response) {
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
    (void)session, (void)sent, (void)id;
    if (!coap_get_data(received, &length, &data) || length != sizeof text - 1) exit(3);
    answered++;
    waiting = 0;
    return COAP_RESPONSE_OK;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static int serve(coap_context_t *context, coap_address_t *self) {
    coap_resource_t *resource = coap_resource_init(coap_make_str_const("test"), 0);
    coap_register_request_handler(resource, COAP_REQUEST_GET, get_test);
    coap_add_resource(context, resource);
    if (!coap_new_endpoint(context, self, COAP_PROTO_UDP)) return 1;
    while (coap_io_process(context, COAP_IO_WAIT) >= 0) continue;
    return 1;
}

static int bench(coap_context_t *context, coap_address_t *server, double span) {
    coap_session_t *session = coap_new_client_session(context, NULL, server, COAP_PROTO_UDP);
    if (!session) return 1;
    coap_register_response_handler(context, on_response);
    double began = seconds(), now;
    while ((now = seconds()) < began + span) {
        uint8_t token[8];
        size_t length;
        coap_pdu_t *request = coap_pdu_init(COAP_MESSAGE_CON, COAP_REQUEST_CODE_GET,
                                            coap_new_message_id(session), 128);
        coap_session_new_token(session, &length, token);
        coap_add_token(request, length, token);
        coap_add_option(request, COAP_OPTION_URI_PATH, 4, (const uint8_t *)"test");
        waiting = 1;
        if (coap_send(session, request) == COAP_INVALID_MID) return 1;
        while (waiting)
            if (coap_io_process(context, COAP_IO_WAIT) < 0) return 1;
    }
    printf("%.0f\n", answered / (now - began));
    return 0;
}

int main(int argc, char **argv) {
    coap_address_t address;
    if (argc < 3) return 2;
    coap_startup();
    coap_set_log_level(LOG_ERR);
    coap_address_init(&address);
    address.size = sizeof address.addr.sin;
    address.addr.sin.sin_family = AF_INET;
    address.addr.sin.sin_port = htons(atoi(argv[2]));
    address.addr.sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    coap_context_t *context = coap_new_context(NULL);
    if (!context) return 1;
    if (!strcmp(argv[1], "server")) return serve(context, &address);
    return bench(context, &address, argc > 3 ? atof(argv[3]) : 2);
}
