// Maximum over 2×2 windows and ReLU, forward and back.
#pragma once
#include "vector.hpp"

namespace feelstream {
namespace {

// The largest of a window's four, and for training in `route` which of them it was, the first of equals, or −1
// where ReLU lets no gradient through.
template <bool Train>
inline void pool_window(const Vec (&four)[4], bool with_relu, float* output, float* route) {
    Vec best = four[0];
    Mask winner = {};
    for (int p = 1; p < 4; ++p) {
        const Mask larger = four[p] > best;
        best = larger ? four[p] : best;
        if (Train) winner = larger ? Mask{} + p : winner;
    }
    if (with_relu) {
        if (Train) winner = best <= 0.0f ? Mask{} - 1 : winner;
        best = relu(best);
    }
    store(output, best);
    if (Train) store_mask(route, winner);
}

// Spread the gradient of pooled values of some channels over the windows they came from, in planes of
// rows × columns.
inline void unpool(const Stage& s, int first, int channels, const float* delta, const float* route, int rows,
                   int columns, float* spread) {
    for (int c = first; c < first + channels; ++c)
        for (int y = 0; y < s.out_rows; ++y)
            for (int x = 0; x < s.out_columns; ++x)
                for (int v = 0; v < lanes; v += width) {
                    const std::size_t from =
                        ((std::size_t(c) * s.out_rows + y) * s.out_columns + x) * lanes + v;
                    float* to = spread + ((std::size_t(c) * rows + 2 * y) * columns + 2 * x) * lanes + v;
                    const Vec value = load(delta + from);
                    const Mask winner = load_mask(route + from);
                    for (int p = 0; p < 4; ++p)
                        store(to + ((p / 2) * columns + p % 2) * lanes, winner == p ? value : Vec{});
                }
}

inline void pool_forward(const Stage& s, const float* in, float* output, float* route) {
    const std::size_t row = std::size_t(s.columns) * lanes;
    for (int c = 0; c < s.channels; ++c)
        for (int y = 0; y < s.out_rows; ++y)
            for (int x = 0; x < s.out_columns; ++x)
                for (int v = 0; v < lanes; v += width) {
                    const float* from = in + (std::size_t(c) * s.rows + 2 * y) * row + 2 * x * lanes + v;
                    const std::size_t to =
                        ((std::size_t(c) * s.out_rows + y) * s.out_columns + x) * lanes + v;
                    const Vec four[4] = {load(from), load(from + lanes), load(from + row),
                                         load(from + row + lanes)};
                    pool_window<true>(four, s.relu, output + to, route + to);
                }
}

inline void pool_backward(const Stage& s, const float* delta, const float* route, float* result) {
    for (std::size_t i = 0; i < s.inputs() * lanes; ++i) result[i] = 0;  // an odd last row or column
    unpool(s, 0, s.channels, delta, route, s.rows, s.columns, result);
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
