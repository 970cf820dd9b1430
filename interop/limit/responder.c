/* The limit that a server on one socket can reach: recvfrom, the fewest instructions that make a
 * piggybacked 2.05 of a Confirmable request, sendto. It parses nothing and remembers nothing.
 *
 *   responder [PORT [ADDRESS]] */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int main(int argc, char **argv) {
    static const char text[] = "012345678901234567890123456789012345678901234567890123456789";
    struct sockaddr_in self = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_DGRAM, 0), buffer = 4 << 20;
    self.sin_port = htons(argc > 1 ? atoi(argv[1]) : 5683);
    self.sin_addr.s_addr = argc > 2 ? inet_addr(argv[2]) : htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    if (fd < 0 || bind(fd, (struct sockaddr *)&self, sizeof self) < 0) {
        perror("responder");
        return 1;
    }
    for (;;) {
        unsigned char in[2048], out[256];
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        ssize_t n = recvfrom(fd, in, sizeof in, 0, (struct sockaddr *)&peer, &length);
        if (n < 4 || (in[0] & 0xf0) != 0x40) continue;
        size_t token = in[0] & 15, at = 4 + token;
        if (token > 8 || (size_t)n < at) continue;
        memcpy(out, in, at);
        out[0] = 0x60 | token;                /* ACK */
        out[1] = 0x45;                        /* 2.05 */
        out[at++] = 0xc0;                     /* Content-Format: text/plain */
        out[at++] = 0xff;
        memcpy(out + at, text, sizeof text - 1);
        sendto(fd, out, at + sizeof text - 1, 0, (struct sockaddr *)&peer, length);
    }
}
