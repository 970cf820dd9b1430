/* The limit that a client reaches with one request at a time: sendto a Confirmable GET of /test,
 * recvfrom its answer, again. It compares the message ID and nothing else, and repeats nothing.
 *
 *   generator PORT SECONDS         prints requests per second */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    unsigned char out[] = {0x44, 1, 0, 0, 1, 2, 3, 4, 0xb4, 't', 'e', 's', 't'}, in[2048];
    struct sockaddr_in server = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    unsigned long answered = 0;
    if (argc < 3 || fd < 0) return 2;
    server.sin_port = htons(atoi(argv[1]));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    double began = seconds(), span = atof(argv[2]), now;
    while ((now = seconds()) < began + span) {
        unsigned short id = ++answered;
        out[2] = id >> 8, out[3] = id;
        sendto(fd, out, sizeof out, 0, (struct sockaddr *)&server, sizeof server);
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        ssize_t n = recvfrom(fd, in, sizeof in, 0, (struct sockaddr *)&peer, &length);
        if (n < 4 || in[2] != out[2] || in[3] != out[3]) return 3;
    }
    printf("%.0f\n", answered / (now - began));
    return 0;
}
