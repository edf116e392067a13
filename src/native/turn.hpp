// A matrix turned, by blocks of as many rows and columns as a vector has numbers.
#pragma once
#include <cstddef>

#include "vector.hpp"

namespace feelstream {
namespace {

// Rounds that turn ever larger blocks; the first two stay within 16 bytes, where each shuffle is one cheap instruction,
// and leave the second and the third of four rows in each other's place.
#define FEELSTREAM_ROUND(apart, low, high)                             \
    for (int i = 0; i < width; ++i)                                    \
        if (!(i & (apart))) {                                          \
            const Vec a = block[i], b = block[i + (apart)];            \
            block[i] = FEELSTREAM_SHUFFLE(Mask, a, b, low);            \
            block[i + (apart)] = FEELSTREAM_SHUFFLE(Mask, a, b, high); \
        }
#define FEELSTREAM_LIST(...) __VA_ARGS__

inline void turn_block(Vec (&block)[width]){
#if defined(__AVX512F__)
    FEELSTREAM_ROUND(1, FEELSTREAM_LIST(0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29),
                     FEELSTREAM_LIST(2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31))
        FEELSTREAM_ROUND(2, FEELSTREAM_LIST(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
                         FEELSTREAM_LIST(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
            FEELSTREAM_ROUND(4, FEELSTREAM_LIST(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
                             FEELSTREAM_LIST(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
                FEELSTREAM_ROUND(8, FEELSTREAM_LIST(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
                                 FEELSTREAM_LIST(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
#elif defined(__AVX2__)
    FEELSTREAM_ROUND(1, FEELSTREAM_LIST(0, 8, 1, 9, 4, 12, 5, 13), FEELSTREAM_LIST(2, 10, 3, 11, 6, 14, 7, 15))
        FEELSTREAM_ROUND(2, FEELSTREAM_LIST(0, 1, 8, 9, 4, 5, 12, 13), FEELSTREAM_LIST(2, 3, 10, 11, 6, 7, 14, 15))
            FEELSTREAM_ROUND(4, FEELSTREAM_LIST(0, 1, 2, 3, 8, 9, 10, 11), FEELSTREAM_LIST(4, 5, 6, 7, 12, 13, 14, 15))
#else
    FEELSTREAM_ROUND(1, FEELSTREAM_LIST(0, 4, 1, 5), FEELSTREAM_LIST(2, 6, 3, 7))
        FEELSTREAM_ROUND(2, FEELSTREAM_LIST(0, 1, 4, 5), FEELSTREAM_LIST(2, 3, 6, 7))
#endif
}
#undef FEELSTREAM_ROUND
#undef FEELSTREAM_LIST

// from (rows, columns) → to (columns, row), each row `apart` numbers after the one before and zero from `rows` on up to
// whole vectors; `columns` is a multiple of the vector's width.
FEELSTREAM_NOINLINE void turn(const float* from, int rows, int columns, std::ptrdiff_t apart, float* to) {
    for (int y = 0; y < rows; y += width)
        for (int x = 0; x < columns; x += width) {
            Vec block[width];
            for (int i = 0; i < width; ++i)
                block[i] = y + i < rows ? load(from + std::ptrdiff_t(y + i) * columns + x) : Vec{};
            turn_block(block);
            for (int i = 0; i < width; ++i)
                store(to + (x + i) * apart + y, block[(i & ~3) | (i & 1) << 1 | (i >> 1 & 1)]);
        }
}

}  // namespace
}  // namespace feelstream
