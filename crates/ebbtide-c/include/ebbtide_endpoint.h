/* A CoAP endpoint in the caller's event loop: client and server, bodies in blocks, observations, with Ebbtide's
 * congestion control (FASOR with marked tokens), in memory that the caller gives. It allocates nothing.
 *
 * The caller owns the clock and the socket:
 *
 *     ebbtide_endpoint_init(&endpoint, sizeof endpoint, &io, NULL);
 *     for (;;) {
 *         ebbtide_endpoint_poll(&endpoint, now(), &due);      after every other call: sends, and calls back
 *         wait for a datagram, or until `due`;
 *         if (a datagram has arrived) ebbtide_endpoint_receive(&endpoint, now(), &from, datagram, length);
 *     }
 *
 * Functions return EBBTIDE_OK or a negative code, and had no effect then. A call from within a callback is
 * EBBTIDE_ORDER. Calls for one endpoint come from one thread at a time. An endpoint has 4 peers and 4 requests at a time, 4
 * observers, and blocks of 256 bytes; give `receive` whole datagrams of at least 320 bytes. */
#ifndef EBBTIDE_ENDPOINT_H
#define EBBTIDE_ENDPOINT_H

#include "ebbtide.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EBBTIDE_TOO_LARGE (-7) /* on_body refused a piece of the response */
#define EBBTIDE_REFUSED (-8)   /* the options are longer than a message, or all peers have open exchanges */
#define EBBTIDE_PROTOCOL (-9)  /* the peer violated RFC 7959, or its resource changes too fast */
#define EBBTIDE_ABSENT (-10)   /* the message has no such option */

/* Codes of methods. A response's code is 32 times its class and its detail: 69 is 2.05. */
#define EBBTIDE_GET 1
#define EBBTIDE_POST 2
#define EBBTIDE_PUT 3
#define EBBTIDE_DELETE 4

/* The endpoint. Its contents are the library's; it must not move. Zeroed memory is not initialised. */
typedef struct ebbtide_endpoint { uint64_t opaque[1024]; } ebbtide_endpoint;

/* An address of the caller's own kind, such as the bytes of a sockaddr_in. The endpoint only compares them. */
typedef struct ebbtide_address {
    uint8_t length; /* at most 31 */
    uint8_t bytes[31];
} ebbtide_address;

typedef struct ebbtide_io {
    void *context; /* the first argument of both functions */
    /* Sends a datagram, or drops it. */
    void (*send)(void *context, const ebbtide_address *to, const uint8_t *datagram, size_t length);
    /* A random number: unpredictable on the open Internet (RFC 7252 section 11.4). */
    uint32_t (*random)(void *context);
} ebbtide_io;

typedef struct ebbtide_option {
    uint16_t number; /* Uri-Path, one for each segment, is 11; Uri-Query is 15; Content-Format is 12 */
    uint16_t length;
    const uint8_t *value;
} ebbtide_option;

/* A message, during a callback. */
typedef struct ebbtide_message {
    uint8_t code;
    size_t length; /* of its payload */
    const uint8_t *payload;
    const void *opaque;
} ebbtide_message;

/* A request. The values of options and the body stay valid until on_done was called, for an observation until it has ended. */
typedef struct ebbtide_request {
    ebbtide_address to;
    uint8_t code;
    uint8_t observe;       /* 1: observe the resource; a GET without a body */
    uint16_t option_count; /* at most 8 */
    const ebbtide_option *options;
    const uint8_t *body;
    size_t body_length;
    void *context; /* the first argument of both functions */
    /* A piece of the response belongs at `offset`; at 0 the body begins anew. 0 accepts it. May be NULL. */
    int (*on_body)(void *context, const ebbtide_message *message, size_t offset);
    /* The response is complete, and has this code; a negative one is the reason why there is none (EBBTIDE_GAVE_UP: no answer).
     * An observation calls it for each state, and ends with 0, a negative code, or the code of an error. May be NULL. */
    void (*on_done)(void *context, int result);
} ebbtide_request;

/* An answer to a request, whose payload is in the room of the callback. Zeroed before it. */
typedef struct ebbtide_answer {
    uint8_t code;    /* 132 (4.04) by default */
    uint8_t subject; /* the number of the subject that may be observed, 0 if none */
    uint8_t has_format, has_max_age;
    uint16_t content_format;
    uint32_t max_age; /* seconds */
    uint32_t etag;    /* of a body that is longer than the room; 0 if none */
    size_t length;    /* bytes in the room */
    size_t total;     /* bytes of the whole body, if it is longer than the room */
} ebbtide_answer;

/* The resources of a server. */
typedef struct ebbtide_handler {
    void *context; /* the first argument of the functions */
    /* A piece of a request's body belongs at `offset`. 0 accepts it, and an error's code (such as 141, 4.13) refuses. May be NULL. */
    int (*take)(void *context, const ebbtide_message *message, size_t offset);
    /* Answers a request whose body has arrived, from `offset` of the response's body. Called again for each block of a long answer. */
    void (*answer)(void *context, const ebbtide_message *message, size_t offset, uint8_t *room, size_t room_length,
                   ebbtide_answer *answer);
    /* The state of a subject, for a notification. May be NULL. */
    void (*state)(void *context, uint8_t subject, uint8_t *room, size_t room_length, ebbtide_answer *answer);
} ebbtide_handler;

/* Makes an endpoint. `size` is sizeof(ebbtide_endpoint). Without settings RFC 7252's hold. EBBTIDE_NULL, EBBTIDE_SIZE, EBBTIDE_RANGE. */
int ebbtide_endpoint_init(ebbtide_endpoint *endpoint, size_t size, const ebbtide_io *io, const ebbtide_settings *settings);

/* Accepts a request, which the next poll sends. `handle` may be NULL. EBBTIDE_BUSY: four requests are under way.
 * EBBTIDE_RANGE: its code, address, number of options or observation is not one of a request. */
int ebbtide_endpoint_request(ebbtide_endpoint *endpoint, const ebbtide_request *request, uint32_t *handle);

/* Ends a request without calling on_done. An observation deregisters first, and then calls it with 0. EBBTIDE_ORDER: it has ended. */
int ebbtide_endpoint_cancel(ebbtide_endpoint *endpoint, uint64_t now_ms, uint32_t handle);

/* A datagram has arrived. Any bytes are allowed. */
int ebbtide_endpoint_receive(ebbtide_endpoint *endpoint, uint64_t now_ms, const ebbtide_address *from, const uint8_t *datagram,
                             size_t length);

/* Does what is due, and writes when more will be: UINT64_MAX if only a datagram makes something due. */
int ebbtide_endpoint_poll(ebbtide_endpoint *endpoint, uint64_t now_ms, uint64_t *due_ms);

/* From now on requests are answered. The handler is copied. Without one they are rejected. */
int ebbtide_endpoint_serve(ebbtide_endpoint *endpoint, const ebbtide_handler *handler);

/* The state of a subject has changed: the next poll notifies its observers. */
int ebbtide_endpoint_changed(ebbtide_endpoint *endpoint, uint8_t subject);

/* Within a callback: the length of the option with this number, the `index`th of them, whose value it sets. */
int ebbtide_message_option(const ebbtide_message *message, uint16_t number, size_t index, const uint8_t **value);

#ifdef __cplusplus
}
#endif

#endif
