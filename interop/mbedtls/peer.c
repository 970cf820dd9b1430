/* Mbed TLS as a DTLS 1.2 peer, with one CoAP message each way: `GET /test` and its answer.
 *
 *   peer ask HOST PORT (psk IDENTITY KEY | cert AUTHORITY.pem [CERTIFICATE.pem KEY.pem]) [cid]
 *   peer serve PORT (psk IDENTITY KEY | cert CERTIFICATE.pem KEY.pem AUTHORITY.pem) [cid]
 *
 * `ask` prints the payload of the answer. `serve` prints `ready`, and serves one client until it closes its
 * session. `peer has-cid` does nothing else but tell. With `cid` a connection ID of four bytes is negotiated, if the library has RFC 9146 (from 3.2 on);
 * `cid` with an older one is exit code 127.
 */
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/debug.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>
#include <mbedtls/ssl_cookie.h>
#include <mbedtls/timing.h>
#include <mbedtls/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mbedtls_entropy_context entropy;
static mbedtls_ctr_drbg_context drbg;
static mbedtls_ssl_config config;
static mbedtls_ssl_context ssl;
static mbedtls_net_context net, listening;
static mbedtls_timing_delay_context timer;
static mbedtls_ssl_cookie_ctx cookies;
static mbedtls_x509_crt own, authority;
static mbedtls_pk_context key;

static void check(int result, const char *what) {
    char text[200];
    if (result >= 0) return;
    mbedtls_strerror(result, text, sizeof text);
    fprintf(stderr, "%s: -0x%04x %s\n", what, -result, text);
    exit(1);
}

static int read_key(const char *path) {
#if MBEDTLS_VERSION_MAJOR >= 3
    return mbedtls_pk_parse_keyfile(&key, path, NULL, mbedtls_ctr_drbg_random, &drbg);
#else
    return mbedtls_pk_parse_keyfile(&key, path, NULL);
#endif
}

static void credentials(int server, char **arguments, int count) {
    if (strcmp(arguments[0], "psk") == 0) {
        check(mbedtls_ssl_conf_psk(&config, (unsigned char *)arguments[2], strlen(arguments[2]),
                                   (unsigned char *)arguments[1], strlen(arguments[1])), "key");
        return;
    }
    const char *of_authority = server ? arguments[3] : arguments[1];
    char **of_own = server ? arguments + 1 : arguments + 2;
    check(mbedtls_x509_crt_parse_file(&authority, of_authority), "authority");
    mbedtls_ssl_conf_ca_chain(&config, &authority, NULL);
    mbedtls_ssl_conf_authmode(&config, MBEDTLS_SSL_VERIFY_REQUIRED);
    if (server || count > 2) {
        check(mbedtls_x509_crt_parse_file(&own, of_own[0]), "certificate");
        check(read_key(of_own[1]), "private key");
        check(mbedtls_ssl_conf_own_cert(&config, &own, &key), "certificate");
    }
}

static void negotiate_cid(int wanted) {
    if (!wanted) return;
#if defined(MBEDTLS_SSL_DTLS_CONNECTION_ID) && MBEDTLS_VERSION_NUMBER >= 0x03020000
    unsigned char id[4] = {1, 2, 3, 4};
    if (wanted < 0) return;
    check(mbedtls_ssl_conf_cid(&config, sizeof id, MBEDTLS_SSL_UNEXPECTED_CID_IGNORE), "cid");
    check(mbedtls_ssl_setup(&ssl, &config), "setup");
    check(mbedtls_ssl_set_cid(&ssl, MBEDTLS_SSL_CID_ENABLED, id, sizeof id), "cid");
#else
    exit(127);
#endif
}

static void shake_hands(int server) {
    int result;
    unsigned char address[64];
    size_t length = 0;
    for (;;) {
        result = mbedtls_ssl_handshake(&ssl);
        if (result == MBEDTLS_ERR_SSL_WANT_READ || result == MBEDTLS_ERR_SSL_WANT_WRITE) continue;
        if (!server || result != MBEDTLS_ERR_SSL_HELLO_VERIFY_REQUIRED) break;
        mbedtls_net_free(&net);
        check(mbedtls_ssl_session_reset(&ssl), "reset");
        check(mbedtls_net_accept(&listening, &net, address, sizeof address, &length), "accept");
        check(mbedtls_ssl_set_client_transport_id(&ssl, address, length), "transport ID");
        mbedtls_ssl_set_bio(&ssl, &net, mbedtls_net_send, mbedtls_net_recv, mbedtls_net_recv_timeout);
    }
    check(result, "handshake");
    fprintf(stderr, "%s %s\n", mbedtls_ssl_get_version(&ssl), mbedtls_ssl_get_ciphersuite(&ssl));
#if defined(MBEDTLS_SSL_DTLS_CONNECTION_ID) && MBEDTLS_VERSION_NUMBER >= 0x03020000
    unsigned char peer[32];
    size_t peer_length = 0;
    int enabled = 0;
    if (mbedtls_ssl_get_peer_cid(&ssl, &enabled, peer, &peer_length) == 0 && enabled)
        fprintf(stderr, "cid of the peer: %zu bytes\n", peer_length);
#endif
}

static int ask(void) {
    /* Confirmable GET, message ID 0x1234, no token, Uri-Path "test". */
    static const unsigned char request[] = {0x40, 0x01, 0x12, 0x34, 0xb4, 't', 'e', 's', 't'};
    unsigned char answer[1500];
    check(mbedtls_ssl_write(&ssl, request, sizeof request), "write");
    int length = mbedtls_ssl_read(&ssl, answer, sizeof answer);
    check(length, "read");
    unsigned char *payload = memchr(answer + 4, 0xff, length > 4 ? length - 4 : 0);
    if (length < 4 || answer[1] != 0x45 || !payload) return fprintf(stderr, "no answer 2.05\n"), 1;
    printf("%.*s\n", (int)(answer + length - payload - 1), payload + 1);
    mbedtls_ssl_close_notify(&ssl);
    return 0;
}

static int serve(void) {
    static const char text[] = "012345678901234567890123456789012345678901234567890123456789";
    unsigned char request[1500], answer[4 + 8 + 1 + sizeof text];
    for (;;) {
        int length = mbedtls_ssl_read(&ssl, request, sizeof request);
        if (length == MBEDTLS_ERR_SSL_WANT_READ || length == MBEDTLS_ERR_SSL_TIMEOUT) continue;
        if (length < 4) return 0;
        int token = request[0] & 15;
        if (token > 8 || length < 4 + token || request[1] == 0) continue;
        answer[0] = 0x60 | token;
        answer[1] = 0x45;
        memcpy(answer + 2, request + 2, 2 + token);
        answer[4 + token] = 0xff;
        memcpy(answer + 5 + token, text, sizeof text - 1);
        check(mbedtls_ssl_write(&ssl, answer, 5 + token + sizeof text - 1), "write");
    }
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "has-cid") == 0) {
        negotiate_cid(-1);
        return 0;
    }
    int server = count > 1 && strcmp(arguments[1], "serve") == 0;
    int first = server ? 3 : 4;
    if (count < first + 2) return fprintf(stderr, "see the beginning of peer.c\n"), 2;
    int cid = strcmp(arguments[count - 1], "cid") == 0;
    unsigned char address[64];
    size_t length = 0;

    mbedtls_entropy_init(&entropy);
    mbedtls_ctr_drbg_init(&drbg);
    mbedtls_ssl_config_init(&config);
    mbedtls_ssl_init(&ssl);
    mbedtls_net_init(&net);
    mbedtls_net_init(&listening);
    mbedtls_x509_crt_init(&own);
    mbedtls_x509_crt_init(&authority);
    mbedtls_pk_init(&key);
    mbedtls_ssl_cookie_init(&cookies);
    check(mbedtls_ctr_drbg_seed(&drbg, mbedtls_entropy_func, &entropy, NULL, 0), "seed");
    check(mbedtls_ssl_config_defaults(&config, server ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT,
                                      MBEDTLS_SSL_TRANSPORT_DATAGRAM, MBEDTLS_SSL_PRESET_DEFAULT), "defaults");
    mbedtls_ssl_conf_rng(&config, mbedtls_ctr_drbg_random, &drbg);
    mbedtls_ssl_conf_read_timeout(&config, 20000);
    credentials(server, arguments + first, count - first - cid);
    if (server) {
        check(mbedtls_ssl_cookie_setup(&cookies, mbedtls_ctr_drbg_random, &drbg), "cookies");
        mbedtls_ssl_conf_dtls_cookies(&config, mbedtls_ssl_cookie_write, mbedtls_ssl_cookie_check, &cookies);
    }
    if (cid)
        negotiate_cid(cid);
    else
        check(mbedtls_ssl_setup(&ssl, &config), "setup");
    mbedtls_ssl_set_timer_cb(&ssl, &timer, mbedtls_timing_set_delay, mbedtls_timing_get_delay);
    if (server) {
        check(mbedtls_net_bind(&listening, "127.0.0.1", arguments[2], MBEDTLS_NET_PROTO_UDP), "bind");
        puts("ready");
        fflush(stdout);
        check(mbedtls_net_accept(&listening, &net, address, sizeof address, &length), "accept");
        check(mbedtls_ssl_set_client_transport_id(&ssl, address, length), "transport ID");
    } else {
        check(mbedtls_net_connect(&net, arguments[2], arguments[3], MBEDTLS_NET_PROTO_UDP), "connect");
        check(mbedtls_ssl_set_hostname(&ssl, arguments[2]), "name");
    }
    mbedtls_ssl_set_bio(&ssl, &net, mbedtls_net_send, mbedtls_net_recv, mbedtls_net_recv_timeout);
    shake_hands(server);
    return server ? serve() : ask();
}
