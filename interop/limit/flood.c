/* A flood: so many datagrams a second, each from another address of 127.0.0.0/8, that nobody answers
 * for. In turn a GET, a POST, the first block of an upload that is never finished, the registration
 * of an observer, a Reset and an ACK that belong to nothing.
 *
 *   flood PORT RATE ADDRESSES SECONDS */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define MESSAGE(...) {sizeof((unsigned char[]){__VA_ARGS__}), {__VA_ARGS__}}
static const struct { size_t length; unsigned char bytes[32]; } messages[] = {
    MESSAGE(0x40, 1, 0, 0, 0xb4, 't', 'e', 's', 't'),
    MESSAGE(0x40, 2, 0, 0, 0xb5, 'c', 'o', 'u', 'n', 't'),
    MESSAGE(0x40, 3, 0, 0, 0xb4, 'e', 'c', 'h', 'o', 0xd1, 3, 0x08, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16),
    MESSAGE(0x40, 1, 0, 0, 0x60, 0x54, 't', 'i', 'm', 'e'),
    MESSAGE(0x70, 0, 0, 0),
    MESSAGE(0x60, 0, 0, 0),
};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    struct sockaddr_in server = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (argc < 5 || fd < 0) return 2;
    server.sin_port = htons(atoi(argv[1]));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    double rate = atof(argv[2]), span = atof(argv[4]), began = seconds();
    unsigned long addresses = strtoul(argv[3], NULL, 10), sent = 0;
    for (;;) {
        double elapsed = seconds() - began;
        if (elapsed >= span) return 0;
        for (; sent < rate * elapsed; sent++) {
            unsigned char bytes[32];
            const size_t length = messages[sent % 6].length;
            memcpy(bytes, messages[sent % 6].bytes, length);
            bytes[2] = sent >> 8, bytes[3] = sent;
            union { char room[CMSG_SPACE(sizeof(struct in_pktinfo))]; struct cmsghdr align; } control = {0};
            struct iovec part = {bytes, length};
            struct msghdr message = {.msg_name = &server, .msg_namelen = sizeof server, .msg_iov = &part,
                .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
            struct cmsghdr *header = CMSG_FIRSTHDR(&message);
            *header = (struct cmsghdr){.cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO,
                .cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo))};
            struct in_pktinfo info = {.ipi_spec_dst.s_addr = htonl(0x7f000100 + sent % addresses)};
            memcpy(CMSG_DATA(header), &info, sizeof info);
            sendmsg(fd, &message, 0);
        }
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
}
