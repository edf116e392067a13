// Loops cut into tiles whose sizes the compiler knows, so that what they add up stays in registers.
#pragma once
#include "vector.hpp"

namespace feelstream {
namespace {

// Channels × positions of accumulators, the inputs and a weight must fit the registers, and there must be enough
// accumulators (8 to 10) to hide how long a multiply-add takes.
constexpr int channel_tile = 6;
constexpr int position_tile = registers == 32 ? 4 : 2;

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
