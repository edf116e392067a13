// The vector of this instruction set, through the compiler's vector extensions.
#pragma once
#include "network.hpp"

namespace feelstream {
namespace {

#if defined(__AVX512F__)
constexpr int width = 16, registers = 32;
#elif defined(__AVX2__)
constexpr int width = 8, registers = 16;
#elif defined(__aarch64__)
constexpr int width = 4, registers = 32;
#else
constexpr int width = 4, registers = 16;
#endif

typedef float Vec __attribute__((vector_size(width * 4)));
typedef int Mask __attribute__((vector_size(width * 4)));
typedef float LooseVec __attribute__((vector_size(width * 4), aligned(4), may_alias));
typedef int LooseMask __attribute__((vector_size(width * 4), aligned(4), may_alias));

inline Vec load(const float* at) { return *reinterpret_cast<const LooseVec*>(at); }
inline void store(float* at, Vec value) { *reinterpret_cast<LooseVec*>(at) = value; }
inline Mask load_mask(const float* at) { return *reinterpret_cast<const LooseMask*>(at); }
inline void store_mask(float* at, Mask value) { *reinterpret_cast<LooseMask*>(at) = value; }
inline Vec splat(float value) { return Vec{} + value; }

// NaN stays NaN, so that trouble is seen at the end rather than hidden here.
inline Vec relu(Vec value) { return value <= 0.0f ? Vec{} : value; }

inline float sum(Vec value) {
    // Halving keeps the order of additions fixed and the dependency chain short.
    float part[width];
    store(part, value);
    for (int half = width / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) part[i] += part[i + half];
    return part[0];
}

// A number the compiler knows, so that loops over it unroll and arrays of that size live in registers.
template <int N>
struct Size {
    static constexpr int value = N;
};

// Call f(Size<n>) for 1 ≤ n ≤ Max.
template <int Max, class F>
inline void with_size(int n, F&& f) {
    if (n == Max)
        f(Size<Max>{});
    else if constexpr (Max > 1)
        with_size<Max - 1>(n, f);
}

// Cut n into the fewest tiles of at most Max, as equal as can be; f(first, Size<how many>).
template <int Max, class F>
inline void tiles(int n, F&& f) {
    const int count = (n + Max - 1) / Max;
    for (int t = 0, first = 0; t < count; ++t) {
        const int size = n / count + (t < n % count);
        with_size<Max>(size, [&](auto fixed) { f(first, fixed); });
        first += size;
    }
}

// Same cut, for what only needs the numbers.
template <int Max, class F>
inline void tile_bounds(int n, F&& f) {
    const int count = (n + Max - 1) / Max;
    for (int t = 0, first = 0; t < count; ++t) {
        const int size = n / count + (t < n % count);
        f(first, size);
        first += size;
    }
}

}  // namespace
}  // namespace feelstream
