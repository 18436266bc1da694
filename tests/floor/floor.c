/* The least that calls of PCMU cost on this machine: sockets, tables and a file, without anything that makes a call of them.
 *
 * Each call has a socket. Every 20 ms it takes the packet that came, decodes it by a table, measures its power and the eight
 * frequencies of DTMF, adds noise to a tone, encodes that by a table, sends it, and records both sides in stereo. The calls are spread over 20 phases of 1 ms. A child process is the other side:
 * it sends a packet to each call every 20 ms and takes what comes. Only the CPU time of the parent is counted.
 *
 * Usage: floor CALLS SECONDS, in a folder that it may write to. Prints milliseconds of CPU a call and second. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PHASES = 20, PHASE_NS = 1000000, FRAME = 160, HEADER = 12, PACKET = HEADER + FRAME, SECOND = 8000, FIRST_PORT = 42000 };

struct call {
    int media, file;
    int filled;
    int16_t recorded[SECOND][2];
};

static float doubled_cosine[8];
static volatile float heard;
static int16_t decoded[256], tone[SECOND], noise[SECOND];
static uint8_t encoded[65536 >> 2];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* ITU-T G.711, mu-law. */
static int16_t expand(uint8_t byte) {
    int code = ~byte & 0xff, exponent = code >> 4 & 7;
    int level = (((code & 15) << 3) + 132 << exponent) - 132;
    return code & 0x80 ? -level : level;
}

static uint8_t compress(int level) {
    int sign = level < 0 ? 0x80 : 0, exponent = 7;
    level = (level < 0 ? -level : level) + 132;
    if (level > 32767) level = 32767;
    while (exponent > 0 && !(level & 128 << exponent)) exponent--;
    return ~(sign | exponent << 4 | (level >> (exponent + 3) & 15));
}

static void make_tables(void) {
    for (int at = 0; at < 256; at++) decoded[at] = expand(at);
    for (int at = 0; at < 65536 >> 2; at++) encoded[at] = compress((int16_t)(at << 2));
    const double hz[8] = {697, 770, 852, 941, 1209, 1336, 1477, 1633};
    for (int at = 0; at < 8; at++) doubled_cosine[at] = 2 * cos(2 * M_PI * hz[at] / SECOND);
    uint32_t draw = 1;
    for (int at = 0; at < SECOND; at++) {
        draw = draw * 1664525 + 1013904223;
        noise[at] = (int16_t)(draw >> 16) / 32;
        tone[at] = (at / 10 % 2 ? 1 : -1) * (at % 1000 < 500 ? 4000 : 0);
    }
}

static struct sockaddr_in address(int port) {
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int open_socket(int port) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), space = 4 << 20;
    struct sockaddr_in own = address(port);
    if (fd < 0 || bind(fd, (void *)&own, sizeof own)) fail("a socket of the floor");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &space, sizeof space);
    return fd;
}

/* Waits for the deadline of a step, counted from `start`. */
static void wait_for(struct timespec start, long step) {
    long ns = start.tv_nsec + step % 1000 * PHASE_NS;
    struct timespec at = {start.tv_sec + step / 1000 + ns / 1000000000, ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void be_far_side(int fd, int calls, struct timespec start) {
    uint8_t packet[PACKET] = {0x80}, came[2048];
    for (long step = 0;; step++) {
        wait_for(start, step);
        for (int at = step % PHASES; at < calls; at += PHASES) {
            struct sockaddr_in to = address(FIRST_PORT + at);
            for (int n = 0; n < FRAME; n++) packet[HEADER + n] = encoded[(uint16_t)tone[(step / PHASES * FRAME + n) % SECOND] >> 2];
            sendto(fd, packet, PACKET, 0, (void *)&to, sizeof to);
        }
        while (recv(fd, came, sizeof came, 0) > 0) {}
    }
}

/* Power of a frame, and Goertzel filters over it. */
static void analyse(const int16_t *pcm) {
    float last[8] = {0}, before[8] = {0};
    long power = 0;
    for (int n = 0; n < FRAME; n++) {
        power += pcm[n] * pcm[n];
        for (int at = 0; at < 8; at++) {
            float next = pcm[n] + doubled_cosine[at] * last[at] - before[at];
            before[at] = last[at];
            last[at] = next;
        }
    }
    heard = power + last[0] + last[7];
}

/* One tick of a call; returns the number of packets that it took. */
static int serve(struct call *call, uint16_t tick) {
    uint8_t came[2048], packet[PACKET] = {0x80, 0, tick >> 8, tick};
    int taken = recv(call->media, came, sizeof came, 0) == PACKET;
    int from = tick * FRAME % SECOND;
    int16_t pcm[FRAME] = {0};
    for (int n = 0; taken && n < FRAME; n++) pcm[n] = decoded[came[HEADER + n]];
    analyse(pcm);
    for (int n = 0; n < FRAME; n++) {
        int sum = tone[from + n] + noise[(from * 7 + n) % SECOND];
        int16_t sent = sum > 32767 ? 32767 : sum < -32768 ? -32768 : sum;
        packet[HEADER + n] = encoded[(uint16_t)sent >> 2];
        call->recorded[call->filled + n][0] = sent;
        call->recorded[call->filled + n][1] = pcm[n];
    }
    if (send(call->media, packet, PACKET, 0) != PACKET) fail("a packet of the floor");
    call->filled += FRAME;
    if (call->filled == SECOND) {
        if (write(call->file, call->recorded, sizeof call->recorded) < 0) fail("a recording of the floor");
        call->filled = 0;
    }
    return taken;
}

static double cpu_s(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

int main(int count, char **words) {
    int calls = count > 1 ? atoi(words[1]) : 200, seconds = count > 2 ? atoi(words[2]) : 10;
    if (calls < 1 || calls > 2000 || seconds < 1) return fprintf(stderr, "usage: floor CALLS SECONDS\n"), 2;
    make_tables();
    struct call *all = calloc(calls, sizeof *all);
    int far = open_socket(FIRST_PORT - 1);
    struct sockaddr_in there = address(FIRST_PORT - 1);
    for (int at = 0; at < calls; at++) {
        char name[64];
        snprintf(name, sizeof name, "floor-%d.raw", at);
        all[at].media = open_socket(FIRST_PORT + at);
        all[at].filled = at * FRAME % SECOND;
        all[at].file = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600);
        if (connect(all[at].media, (void *)&there, sizeof there) || all[at].file < 0) fail(name);
        memset(all[at].recorded, 0, sizeof all[at].recorded);
        unlink(name);
    }
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    start.tv_sec++;
    pid_t child = fork();
    if (child == 0) be_far_side(far, calls, start);
    close(far);
    double before = cpu_s();
    long taken = 0;
    for (long step = 0; step < 1000L * seconds; step++) {
        wait_for(start, step);
        for (int at = step % PHASES; at < calls; at += PHASES) taken += serve(&all[at], step / PHASES);
    }
    double used = cpu_s() - before;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (taken < 49L * calls * seconds) return fprintf(stderr, "the floor took %ld packets only\n", taken), 1;
    printf("%.4f\n", 1000 * used / calls / seconds);
    return 0;
}
