// The matrix product that convolutions at points and dense layers come down to.
#pragma once
#include <cstddef>

#include "vector.hpp"

namespace feelstream {
namespace {

// A matrix of single numbers: where row i and column r are is i · row + r · column.
struct Factors {
    const float* at;
    std::ptrdiff_t row, column;
};

// sums[i][p] += Σ over r < count of factors(i, r) · vector p of row r of `b`, in the order of r. Rows are b_row apart,
// and the vectors of a row b_next.
template <int C, int P>
inline void add_products(std::ptrdiff_t count, Factors factors, const float* b, std::ptrdiff_t b_row,
                         std::ptrdiff_t b_next, Vec (&sums)[C][P]) {
    const float* a[C];
    for (int i = 0; i < C; ++i) a[i] = factors.at + i * factors.row;
    FEELSTREAM_UNROLL(4)
    for (std::ptrdiff_t r = 0, at = 0; r < count; ++r, at += factors.column, b += b_row) {
        Vec value[P];
        for (int p = 0; p < P; ++p) value[p] = load(b + p * b_next);
        for (int i = 0; i < C; ++i) {
            const Vec factor = splat(a[i][at]);
            for (int p = 0; p < P; ++p) sums[i][p] += value[p] * factor;
        }
    }
}

}  // namespace
}  // namespace feelstream
