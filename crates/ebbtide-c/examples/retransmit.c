/* What a CoAP stack does with the control, on a path that loses every third datagram and takes 40 ms. Also tries the
 * calls that must be refused. Prints the timeouts; returns 0 if all is well. */
#include <ebbtide.h>
#include <stdio.h>
#include <string.h>

#define CHECK(call, wanted) \
    do { \
        int got = (call); \
        if (got != (wanted)) { printf("%s is %d, not %d\n", #call, got, wanted); return 1; } \
    } while (0)

static int refusals(void) {
    ebbtide_control control = {{0}};
    ebbtide_exchange exchange = {{0}};
    ebbtide_settings none = {2000, 4, 0}, brief = {9, 4, 1}, many = {2000, 21, 1};
    uint32_t timeout = 0;
    CHECK(ebbtide_init(NULL, sizeof control, NULL), EBBTIDE_NULL);
    CHECK(ebbtide_init(&control, sizeof control - 4, NULL), EBBTIDE_SIZE);
    CHECK(ebbtide_init(&control, sizeof control, &none), EBBTIDE_RANGE);
    CHECK(ebbtide_init(&control, sizeof control, &brief), EBBTIDE_RANGE);
    CHECK(ebbtide_init(&control, sizeof control, &many), EBBTIDE_RANGE);
    CHECK(ebbtide_admit(&control), EBBTIDE_ORDER);
    CHECK(ebbtide_on_transmit(&control, &exchange, 1, &timeout), EBBTIDE_ORDER);
    CHECK(ebbtide_init(&control, sizeof control, NULL), EBBTIDE_OK);
    CHECK(ebbtide_on_expire(&control, &exchange), EBBTIDE_ORDER);
    CHECK(ebbtide_on_feedback(&control, &exchange, 1), EBBTIDE_ORDER);
    CHECK(ebbtide_on_close(&control, &exchange, EBBTIDE_ACKNOWLEDGED), EBBTIDE_ORDER);
    CHECK(ebbtide_on_transmit(&control, &exchange, 1, NULL), EBBTIDE_NULL);
    CHECK(ebbtide_on_transmit(&control, &exchange, 1, &timeout), EBBTIDE_OK);
    CHECK(ebbtide_on_transmit(&control, &exchange, 1, &timeout), EBBTIDE_ORDER);
    CHECK(ebbtide_admit(&control), EBBTIDE_BUSY);
    CHECK(ebbtide_on_close(&control, &exchange, 3), EBBTIDE_RANGE);
    CHECK(ebbtide_on_close(&control, &exchange, EBBTIDE_CANCELLED), EBBTIDE_OK);
    CHECK(ebbtide_admit(&control), EBBTIDE_OK);
    return 0;
}

int main(void) {
    ebbtide_control control;
    uint32_t random = 7252, timeout;
    int sent = 0, message;
    if (refusals()) return 1;
    CHECK(ebbtide_init(&control, sizeof control, NULL), EBBTIDE_OK);
    for (message = 0; message < 12; message++) {
        ebbtide_exchange exchange;
        uint32_t clock = 0;
        int answered = 0;
        memset(&exchange, 0, sizeof exchange);
        CHECK(ebbtide_admit(&control), EBBTIDE_OK);
        printf("message %d:", message);
        while (!answered) {
            random = random * 1664525 + 1013904223;
            CHECK(ebbtide_on_transmit(&control, &exchange, random, &timeout), EBBTIDE_OK);
            printf(" %u ms", (unsigned)timeout);
            answered = ++sent % 3 != 0;
            clock += answered ? 40 : timeout;
            if (!answered) CHECK(ebbtide_on_expire(&control, &exchange), EBBTIDE_OK);
        }
        CHECK(ebbtide_on_feedback(&control, &exchange, clock), EBBTIDE_OK);
        CHECK(ebbtide_on_close(&control, &exchange, EBBTIDE_ACKNOWLEDGED), EBBTIDE_OK);
        puts("");
    }
    /* The first one waited 2 s or more; by now the path is known. */
    if (timeout >= 2000) return 1;
    return 0;
}
