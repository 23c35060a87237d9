/* Holds base/memory.c against the system's functions: any lengths, places and overlaps. Ends with the number of what differs. */
#define memcpy own_memcpy
#define memmove own_memmove
#define memcmp own_memcmp
#define bcmp own_bcmp
#include "../base/memory.c"
#undef memcpy
#undef memmove
#undef memcmp
#undef bcmp
#include <stdlib.h>
#include <string.h>

enum { ROOM = 700 };

static int sign(int order) {
    return (order > 0) - (order < 0);
}

int main(void) {
    unsigned char text[ROOM], other[ROOM], expected[ROOM];
    srand(1);
    for (int round = 0; round < 300000; round++) {
        size_t bytes = rand() % (round % 7 ? 40 : 600), from = rand() % 60, to = rand() % 60;
        for (int at = 0; at < ROOM; at++) text[at] = other[at] = expected[at] = rand() % 3 ? rand() : 128;
        if (own_memcpy(other + to, text + from, bytes) != other + to) return 1;
        memcpy(expected + to, text + from, bytes);
        if (memcmp(other, expected, ROOM)) return 2;
        own_memmove(other + from, other + to, bytes);
        memmove(expected + from, expected + to, bytes);
        if (memcmp(other, expected, ROOM)) return 3;
        memcpy(other + to, text + from, bytes);
        if (bytes && rand() % 4) other[to + rand() % bytes] ^= rand();
        int order = memcmp(text + from, other + to, bytes);
        if (sign(own_memcmp(text + from, other + to, bytes)) != sign(order)) return 4;
        if (!own_bcmp(text + from, other + to, bytes) != !order) return 5;
    }
    return 0;
}
