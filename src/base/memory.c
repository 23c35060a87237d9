/* Copies and compares memory in place of musl, which compares byte by byte and copies short texts with an instruction that
   is slow to start: a tenth of the processor time of a replay. Only in binaries against musl (src/facts/tokens/build.rs). */
#include <stddef.h>
#include <stdint.h>

/* What lies anywhere and may be anything. */
typedef uint64_t word __attribute__((aligned(1), may_alias));
typedef uint32_t half __attribute__((aligned(1), may_alias));
typedef uint16_t quarter __attribute__((aligned(1), may_alias));
typedef uint64_t block __attribute__((vector_size(16), aligned(1), may_alias));

#define AT(type, start, offset) (*(type *)((uint8_t *)(start) + (offset)))
#define COPY(type, offset) AT(type, to, offset) = AT(const type, from, offset)

/* Fewer than 16 bytes in two moves that may overlap. Both are read before anything is written. */
static void copy_short(void *to, const void *from, size_t bytes) {
    if (bytes >= 8) {
        word last = AT(const word, from, bytes - 8);
        COPY(word, 0);
        AT(word, to, bytes - 8) = last;
    } else if (bytes >= 4) {
        half last = AT(const half, from, bytes - 4);
        COPY(half, 0);
        AT(half, to, bytes - 4) = last;
    } else if (bytes >= 2) {
        quarter last = AT(const quarter, from, bytes - 2);
        COPY(quarter, 0);
        AT(quarter, to, bytes - 2) = last;
    } else if (bytes == 1) {
        COPY(uint8_t, 0);
    }
}

/* Block by block from the start, and what is left by the last block, which is read first: the place may overlap what is
   copied if it begins before it. */
static void copy_forward(void *to, const void *from, size_t bytes) {
    block last = AT(const block, from, bytes - 16);
    size_t at = 0;
    for (; at + 64 <= bytes; at += 64) {
        COPY(block, at);
        COPY(block, at + 16);
        COPY(block, at + 32);
        COPY(block, at + 48);
    }
    for (; at + 16 <= bytes; at += 16) COPY(block, at);
    AT(block, to, bytes - 16) = last;
}

/* The same from the end, for a place that begins within what is copied. */
static void copy_backward(void *to, const void *from, size_t bytes) {
    block first = AT(const block, from, 0);
    for (size_t end = bytes; end >= 16; end -= 16) COPY(block, end - 16);
    AT(block, to, 0) = first;
}

void *memmove(void *to, const void *from, size_t bytes) {
    if (bytes < 16) {
        copy_short(to, from, bytes);
    } else if ((uintptr_t)to - (uintptr_t)from >= bytes) {
        copy_forward(to, from, bytes);
    } else {
        copy_backward(to, from, bytes);
    }
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
    if (bytes < 16) {
        copy_short(to, from, bytes);
    } else {
        copy_forward(to, from, bytes);
    }
    return to;
}

/* The order of two words of text that differ: that of their first different byte, which is the highest when swapped. */
static int order(uint64_t a, uint64_t b) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    a = __builtin_bswap64(a);
    b = __builtin_bswap64(b);
#endif
    return a < b ? -1 : 1;
}

int memcmp(const void *left, const void *right, size_t bytes) {
    size_t at = 0;
    for (; at + 8 <= bytes; at += 8) {
        uint64_t a = AT(const word, left, at), b = AT(const word, right, at);
        if (a != b) return order(a, b);
    }
    if (at < bytes && bytes >= 8) {
        uint64_t a = AT(const word, left, bytes - 8), b = AT(const word, right, bytes - 8);
        return a == b ? 0 : order(a, b);
    }
    for (; at < bytes; at++) {
        int a = AT(const uint8_t, left, at), b = AT(const uint8_t, right, at);
        if (a != b) return a - b;
    }
    return 0;
}

int bcmp(const void *left, const void *right, size_t bytes) {
    return memcmp(left, right, bytes);
}
