// Maximum over windows of 2×2, 1×2 or 2×1, ReLU and padding, forward and back.
#pragma once
#include <string.h>

#include <cstddef>

#include "network.hpp"
#include "vector.hpp"

namespace feelstream {
namespace {

// The largest of a window's P values, and for training in `route` which of them it was, the first of equals, or −1
// where ReLU lets no gradient through.
template <bool Train, int P>
inline void pool_window(const Vec (&value)[P], bool with_relu, float* output, float* route) {
    Vec best = larger(value[1], value[0]);
    Mask winner = -(value[1] > value[0]);  // true is −1
    if constexpr (P == 4) {
        const Vec second = larger(value[3], value[2]);
        if (Train) winner = second > best ? 2 - (value[3] > value[2]) : winner;
        best = larger(second, best);
    }
    if (with_relu) {
        if (Train) winner |= best <= 0.0f;
        best = relu(best);
    }
    store(output, best);
    if (Train) store_mask(route, winner);
}

// The same largest value alone.
template <int P>
inline Vec largest_of(const Vec (&value)[P]) {
    const Vec best = larger(value[1], value[0]);
    if constexpr (P == 4) return larger(larger(value[3], value[2]), best);
    return best;
}

// Which planes and rows of conv outputs an array holds: where a channel and a row start, in numbers.
struct Planes {
    float* memory;
    std::ptrdiff_t channel, row;
};

template <int Rows, int Columns>
inline void unpool_windows(const Stage& s, int first, int channels, int from_row, int rows, const float* delta,
                           const float* route, Planes to) {
    for (int c = 0; c < channels; ++c)
        for (int y = 0; y < rows; ++y) {
            const std::size_t line = (std::size_t(first + c) * s.out_rows + from_row + y) * s.out_columns * lanes;
            float* spread = to.memory + c * to.channel + Rows * y * to.row;
            for (int x = 0; x < s.out_columns * lanes; x += lanes, spread += Columns * lanes)
                for (int v = 0; v < lanes; v += width) {
                    const Vec value = load(delta + line + x + v);
                    const Mask winner = load_mask(route + line + x + v);
                    for (int p = 0; p < Rows * Columns; ++p)
                        store(spread + p / Columns * to.row + p % Columns * lanes + v,
                              Vec(Mask(value) & (winner == p)));
                }
        }
}

// Spread the gradient of some pooled rows of some channels over the windows they came from.
inline void unpool(const Stage& s, int first, int channels, int from_row, int rows, const float* delta,
                   const float* route, Planes to) {
    if (s.pool_rows == 1)
        unpool_windows<1, 2>(s, first, channels, from_row, rows, delta, route, to);
    else if (s.pool_columns == 1)
        unpool_windows<2, 1>(s, first, channels, from_row, rows, delta, route, to);
    else
        unpool_windows<2, 2>(s, first, channels, from_row, rows, delta, route, to);
}

template <int P>
inline void pool_windows(const Stage& s, const float* in, float* output, float* route) {
    const std::size_t row = std::size_t(s.columns) * lanes;
    for (int c = 0; c < s.channels; ++c)
        for (int y = 0; y < s.out_rows; ++y)
            for (int x = 0; x < s.out_columns; ++x)
                for (int v = 0; v < lanes; v += width) {
                    const float* from =
                        in + (std::size_t(c) * s.rows + s.pool_rows * y) * row + s.pool_columns * x * lanes + v;
                    const std::size_t to = ((std::size_t(c) * s.out_rows + y) * s.out_columns + x) * lanes + v;
                    Vec value[P];
                    for (int p = 0; p < P; ++p)
                        value[p] = load(from + p / s.pool_columns * row + p % s.pool_columns * lanes);
                    pool_window<true>(value, s.relu, output + to, route + to);
                }
}

inline void pool_forward(const Stage& s, const float* in, float* output, float* route) {
    if (s.pool_rows == s.pool_columns)
        pool_windows<4>(s, in, output, route);
    else
        pool_windows<2>(s, in, output, route);
}

inline void pool_backward(const Stage& s, const float* delta, const float* route, float* result) {
    for (std::size_t i = 0; i < s.inputs() * lanes; ++i) result[i] = 0;  // an odd last row or column
    const std::ptrdiff_t row = std::ptrdiff_t(s.columns) * lanes;
    unpool(s, 0, s.channels, 0, s.out_rows, delta, route, {result, s.rows * row, row});
}

// Where the smaller plane starts in the larger one: an odd number of zeros has one more behind than before.
inline float* padded_row(const Stage& s, float* plane, int row) {
    const int c = row / s.rows, y = row % s.rows + (s.out_rows - s.rows) / 2, x = (s.out_columns - s.columns) / 2;
    return plane + ((std::size_t(c) * s.out_rows + y) * s.out_columns + x) * lanes;
}

// The zeros around are those of a new workspace: nobody else writes there.
inline void pad_forward(const Stage& s, const float* in, float* output) {
    const std::size_t row = std::size_t(s.columns) * lanes;
    for (int y = 0; y < s.channels * s.rows; ++y) memcpy(padded_row(s, output, y), in + y * row, row * sizeof(float));
}

inline void pad_backward(const Stage& s, float* delta, float* result) {
    const std::size_t row = std::size_t(s.columns) * lanes;
    for (int y = 0; y < s.channels * s.rows; ++y)
        memcpy(result + y * row, padded_row(s, delta, y), row * sizeof(float));
}

inline void relu_forward(const float* in, std::size_t count, float* output) {
    for (std::size_t i = 0; i < count * lanes; i += width) store(output + i, relu(load(in + i)));
}

// In place: no gradient where the output is not positive.
inline void relu_backward(const float* output, std::size_t count, float* delta) {
    for (std::size_t i = 0; i < count * lanes; i += width)
        store(delta + i, load(output + i) <= 0.0f ? Vec{} : load(delta + i));
}

}  // namespace
}  // namespace feelstream
