// The vector of this instruction set, through the compiler's vector extensions.
#pragma once
#if defined(__SSE2__)
#include <immintrin.h>  // intrinsics are always inlined: they leave nothing for the linker
#endif

namespace feelstream {
namespace {

// For loops whose sums must stay in registers: inlined into a large caller, the compiler loses track of them.
#define FEELSTREAM_NOINLINE __attribute__((noinline))

// Before a loop that should be unrolled, whether or not the compiler thinks it too large.
#if defined(__clang__)
#define FEELSTREAM_UNROLL(times)  // unrolls by itself, and warns where it is asked to and does not
#else
#define FEELSTREAM_PRAGMA(words) _Pragma(#words)
#define FEELSTREAM_UNROLL(times) FEELSTREAM_PRAGMA(GCC unroll times)
#endif

// Vectors a and b of `n` numbers: their lower (upper) halves, one from a and one from b in turn.
#if defined(__clang__)
#define FEELSTREAM_SHUFFLE(Numbers, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define FEELSTREAM_SHUFFLE(Numbers, a, b, ...) __builtin_shuffle(a, b, Numbers{__VA_ARGS__})
#endif
#define FEELSTREAM_LOW_4 0, 4, 1, 5
#define FEELSTREAM_HIGH_4 2, 6, 3, 7
#define FEELSTREAM_LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define FEELSTREAM_HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define FEELSTREAM_LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define FEELSTREAM_HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

#if defined(__AVX512F__)
constexpr int width = 16, registers = 32;
#define FEELSTREAM_LOW FEELSTREAM_LOW_16
#define FEELSTREAM_HIGH FEELSTREAM_HIGH_16
#elif defined(__AVX2__)
constexpr int width = 8, registers = 16;
#define FEELSTREAM_LOW FEELSTREAM_LOW_8
#define FEELSTREAM_HIGH FEELSTREAM_HIGH_8
#elif defined(__aarch64__)
constexpr int width = 4, registers = 32;
#else
constexpr int width = 4, registers = 16;
#endif
#if !defined(FEELSTREAM_LOW)
#define FEELSTREAM_LOW FEELSTREAM_LOW_4
#define FEELSTREAM_HIGH FEELSTREAM_HIGH_4
#endif

typedef float Vec __attribute__((vector_size(width * 4)));
typedef int Mask __attribute__((vector_size(width * 4)));
typedef float LooseVec __attribute__((vector_size(width * 4), aligned(4), may_alias));
typedef int LooseMask __attribute__((vector_size(width * 4), aligned(4), may_alias));

inline Vec load(const float* at) { return *reinterpret_cast<const LooseVec*>(at); }
inline void store(float* at, Vec value) { *reinterpret_cast<LooseVec*>(at) = value; }
inline Mask load_mask(const float* at) { return *reinterpret_cast<const LooseMask*>(at); }
inline void store_mask(float* at, Mask value) { *reinterpret_cast<LooseMask*>(at) = value; }
// Minus, for value − 0 is the value whatever it is and costs nothing; 0 + value would have to turn −0 into 0.
inline Vec splat(float value) { return value - Vec{}; }

// a > b ? a : b, number by number; compilers do not always see that the processor has this.
inline Vec larger(Vec a, Vec b) {
#if defined(__AVX512F__)
    return Vec(_mm512_maskz_max_ps(0xffff, __m512(a), __m512(b)));  // without, GCC 12 warns of its own header
#elif defined(__AVX2__)
    return Vec(_mm256_max_ps(__m256(a), __m256(b)));
#elif defined(__SSE2__)
    return Vec(_mm_max_ps(__m128(a), __m128(b)));
#else
    return a > b ? a : b;
#endif
}

// NaN stays NaN, so that trouble is seen at the end rather than hidden here.
inline Vec relu(Vec value) { return larger(Vec{}, value); }

// total[i] = Σ of the lanes of value[i]. A vector's halves are added while two vectors become one, until
// `width` vectors are one vector of sums. `total` has room for Count rounded up to whole vectors.
template <int Count>
inline void sum_lanes(const Vec (&value)[Count], float* total) {
    for (int first = 0; first < Count; first += width) {
        Vec part[width];
        for (int i = 0; i < width; ++i) part[i] = first + i < Count ? value[first + i] : Vec{};
        for (int half = width / 2; half > 0; half /= 2)
            for (int i = 0; i < half; ++i)
                part[i] = FEELSTREAM_SHUFFLE(Mask, part[i], part[i + half], FEELSTREAM_LOW) +
                          FEELSTREAM_SHUFFLE(Mask, part[i], part[i + half], FEELSTREAM_HIGH);
        store(total + first, part[0]);
    }
}

constexpr int whole_vectors(int count) { return (count + width - 1) / width * width; }

inline float sum(Vec value) {
    const Vec one[1] = {value};
    float total[width];
    sum_lanes(one, total);
    return total[0];
}

}  // namespace
}  // namespace feelstream
