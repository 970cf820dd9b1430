/* Ebbtide's congestion control for a CoAP stack in C.
 *
 * The stack keeps its messages and timers. For each peer it keeps an ebbtide_control, for each Confirmable
 * message that is not acknowledged an ebbtide_exchange, and calls
 *
 *     ebbtide_admit        before the first transmission: may another message leave?
 *     ebbtide_on_transmit  at each transmission, the first included: how long to wait for the answer
 *     ebbtide_on_expire    when that time has passed: transmit again, or give up
 *     ebbtide_on_feedback  at the first acknowledgement or Reset
 *     ebbtide_on_close     once, at the end
 *
 * Functions return EBBTIDE_OK or a negative code; with a code other than EBBTIDE_GAVE_UP a call had no effect.
 * They allocate nothing, keep no other state, and may be called from any thread, for one control at a time.
 * Times are in milliseconds. */
#ifndef EBBTIDE_H
#define EBBTIDE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EBBTIDE_OK 0
#define EBBTIDE_NULL (-1)    /* a pointer is NULL */
#define EBBTIDE_SIZE (-2)    /* the library has another size of ebbtide_control: compile against its own header */
#define EBBTIDE_RANGE (-3)   /* a setting or an outcome is out of range */
#define EBBTIDE_ORDER (-4)   /* the control is not initialised, or the call is out of order */
#define EBBTIDE_BUSY (-5)    /* NSTART exchanges are open: wait until one of them is closed */
#define EBBTIDE_GAVE_UP (-6) /* MAX_RETRANSMIT is reached: close the exchange */

/* What a peer's control knows. Its contents are the library's. */
typedef struct ebbtide_control { uint32_t opaque[7]; } ebbtide_control;

/* What an exchange knows. All zeros are a new exchange, which it is again after ebbtide_on_close. */
typedef struct ebbtide_exchange { uint32_t opaque[5]; } ebbtide_exchange;

/* RFC 7252's parameters (section 4.8). */
typedef struct ebbtide_settings {
    uint32_t ack_timeout_ms; /* before a round trip is measured, 10 to 86400000; default 2000 */
    uint8_t max_retransmit;  /* at most 20; default 4 */
    uint8_t nstart;          /* at least 1; default 1 */
} ebbtide_settings;

/* How an exchange ended. */
#define EBBTIDE_ACKNOWLEDGED 0 /* or reset; ebbtide_on_feedback was called before */
#define EBBTIDE_UNANSWERED 1
#define EBBTIDE_CANCELLED 2

/* Makes a control that knows nothing. `size` is sizeof(ebbtide_control). Without settings the defaults hold. */
int ebbtide_init(ebbtide_control *control, size_t size, const ebbtide_settings *settings);

/* Whether a new Confirmable message may leave: EBBTIDE_OK or EBBTIDE_BUSY. */
int ebbtide_admit(const ebbtide_control *control);

/* A transmission leaves. Writes how long to wait for the answer. `random` is a random number, by which timeouts of
 * devices that began together are spread. */
int ebbtide_on_transmit(ebbtide_control *control, ebbtide_exchange *exchange, uint32_t random, uint32_t *timeout_ms);

/* The time to wait has passed. EBBTIDE_OK: transmit again, and call ebbtide_on_transmit. */
int ebbtide_on_expire(ebbtide_control *control, ebbtide_exchange *exchange);

/* The message was acknowledged or reset for the first time, so long after its first transmission. */
int ebbtide_on_feedback(ebbtide_control *control, ebbtide_exchange *exchange, uint32_t since_first_ms);

/* The exchange has ended. */
int ebbtide_on_close(ebbtide_control *control, ebbtide_exchange *exchange, int outcome);

#ifdef __cplusplus
}
#endif

#endif
