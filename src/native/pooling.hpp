// Maximum over 2×2 windows where it stands alone, ReLU where it stands alone, and the way back through both.
#pragma once
#include "vector.hpp"

namespace feelstream {
namespace {

// Spread the gradient of pooled values over the windows they came from; planes are rows × columns.
inline void unpool(const Stage& s, const float* delta, const float* route, int rows, int columns,
                   float* spread) {
    for (int c = 0; c < s.out_channels; ++c)
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
                    Vec best = load(from);
                    Mask winner = {};
                    for (int p = 1; p < 4; ++p) {
                        const Vec other = load(from + (p / 2) * row + (p % 2) * lanes);
                        const Mask larger = other > best;
                        best = larger ? other : best;
                        winner = larger ? Mask{} + p : winner;
                    }
                    if (s.relu) {
                        winner = best <= 0.0f ? Mask{} - 1 : winner;
                        best = relu(best);
                    }
                    store(output + to, best);
                    store_mask(route + to, winner);
                }
}

inline void pool_backward(const Stage& s, const float* delta, const float* route, float* result) {
    for (std::size_t i = 0; i < s.inputs() * lanes; ++i) result[i] = 0;  // an odd last row or column
    unpool(s, delta, route, s.rows, s.columns, result);
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
