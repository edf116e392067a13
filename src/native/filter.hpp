// Minimal filtering (S. Winograd; Toom-Cook): M outputs of a line of K weights from M + K − 1 products. Inputs and
// weights, seen as polynomials, are evaluated at so many points, multiplied there, and the outputs are read off the
// products:
//     outputs = Aᵀ ((G weights) · (B inputs)).
// Everything follows from the points, which are 0, pairs ± p, and infinity. All of it is linear, so the gradients are
// the same three matrices read backwards. winograd.hpp has its own for the 5×5 kernels of the paper.
#pragma once
#include "vector.hpp"

namespace feelstream {
namespace {

template <int M, int K>
struct Matrices {
    static constexpr int points = M + K - 1;
    float a[points][M], g[points][K], b[points][points];
};

// `p` are the finite points. Row j of B is the polynomial that is zero at the others.
template <int M, int K>
constexpr Matrices<M, K> matrices_of(const double (&p)[M + K - 2]) {
    constexpr int N = M + K - 1;
    Matrices<M, K> all{};
    for (int j = 0; j < N; ++j) {
        double polynomial[N] = {1}, scale = 1, power = 1;
        int degree = 0;
        for (int l = 0; l < N - 1; ++l) {
            if (l == j) continue;
            for (int i = ++degree; i >= 0; --i) polynomial[i] = (i ? polynomial[i - 1] : 0) - p[l] * polynomial[i];
            if (j < N - 1) scale *= p[j] - p[l];
        }
        for (int i = 0; i < N; ++i) all.b[j][i] = float(polynomial[i]);
        for (int i = 0; i < M || i < K; ++i) {
            if (i < M) all.a[j][i] = j < N - 1 ? float(power) : float(i == M - 1);
            if (i < K) all.g[j][i] = j < N - 1 ? float(power / scale) : float(i == K - 1);
            if (j < N - 1) power *= p[j];
        }
    }
    return all;
}

// The points were chosen for small rounding (numbers in docs/archive/engine.md): multiples of 1/8, exact matrices.
template <int M, int K>
struct Line;

template <>
struct Line<2, 3> {
    static constexpr auto matrices = matrices_of<2, 3>({0, 1, -1});
};

template <>
struct Line<4, 3> {
    static constexpr auto matrices = matrices_of<4, 3>({0, 0.625, -0.625, 1.5, -1.5});
};

template <>
struct Line<4, 5> {
    static constexpr auto matrices = matrices_of<4, 5>({0, 1, -1, 2, -2, 0.5, -0.5});
};

template <>
struct Line<4, 7> {
    static constexpr auto matrices = matrices_of<4, 7>({0, 0.375, -0.375, 0.75, -0.75, 1.25, -1.25, 2, -2});
};

// One of the three matrices of a line: (points, size).
template <int M, int K>
struct OutputMatrix {
    static constexpr int points = M + K - 1, size = M;
    static constexpr float at(int j, int i) { return Line<M, K>::matrices.a[j][i]; }
};

template <int M, int K>
struct WeightMatrix {
    static constexpr int points = M + K - 1, size = K;
    static constexpr float at(int j, int i) { return Line<M, K>::matrices.g[j][i]; }
};

template <int M, int K>
struct InputMatrix {
    static constexpr int points = M + K - 1, size = points;
    static constexpr float at(int j, int i) { return Line<M, K>::matrices.b[j][i]; }
};

// sum + factor · value, where the compiler knows the factor and whether there is a sum yet.
template <class Factor, bool Begun>
inline Vec plus(Vec sum, Vec value) {
    constexpr float factor = Factor::value;
    if constexpr (!Begun) return factor == 1 ? value : factor * value;
    return factor == 1 ? sum + value : factor == -1 ? sum - value : sum + factor * value;
}

template <class Matrix, int J, int I>
struct Entry {
    static constexpr float value = Matrix::at(J, I);
};

// Σ of row J over the columns I, I + Step, …
template <class Matrix, int J, int I, int Step, bool Begun = false>
inline Vec row_sum(const Vec (&x)[Matrix::size], Vec sum = Vec{}) {
    if constexpr (I >= Matrix::size)
        return sum;
    else if constexpr (Entry<Matrix, J, I>::value == 0)
        return row_sum<Matrix, J, I + Step, Step, Begun>(x, sum);
    else
        return row_sum<Matrix, J, I + Step, Step, true>(x, plus<Entry<Matrix, J, I>, Begun>(sum, x[I]));
}

// value = matrix · x. At ± p the even columns are alike and the odd ones have opposite signs, so each is summed once.
template <class Matrix, int J = 0>
inline void at_points(const Vec (&x)[Matrix::size], Vec (&value)[Matrix::points]) {
    if constexpr (J == 0 || J == Matrix::points - 1) {
        value[J] = row_sum<Matrix, J, 0, 1>(x);
        if constexpr (J == 0) at_points<Matrix, 1>(x, value);
    } else {
        const Vec even = row_sum<Matrix, J, 0, 2>(x), odd = row_sum<Matrix, J, 1, 2>(x);
        value[J] = even + odd, value[J + 1] = even - odd;
        at_points<Matrix, J + 2>(x, value);
    }
}

// Column I of the matrix times the points, those of a pair being already added or subtracted.
template <class Matrix, int I, int J = 0, bool Begun = false>
inline Vec column_sum(const Vec (&m)[Matrix::points], Vec sum = Vec{}) {
    if constexpr (J >= Matrix::points)
        return sum;
    else {
        constexpr bool single = J == 0 || J == Matrix::points - 1;
        constexpr int from = single ? J : J + I % 2, next = single ? J + 1 : J + 2;
        if constexpr (Entry<Matrix, J, I>::value == 0)
            return column_sum<Matrix, I, next, Begun>(m, sum);
        else
            return column_sum<Matrix, I, next, true>(m, plus<Entry<Matrix, J, I>, Begun>(sum, m[from]));
    }
}

template <class Matrix, int I>
inline void columns_from(const Vec (&m)[Matrix::points], Vec (&x)[Matrix::size]) {
    if constexpr (I < Matrix::size) {
        x[I] = column_sum<Matrix, I>(m);
        columns_from<Matrix, I + 1>(m, x);
    }
}

// x = matrixᵀ · value.
template <class Matrix>
inline void from_points(const Vec (&value)[Matrix::points], Vec (&x)[Matrix::size]) {
    Vec m[Matrix::points];
    m[0] = value[0], m[Matrix::points - 1] = value[Matrix::points - 1];
    for (int j = 1; j < Matrix::points - 1; j += 2) m[j] = value[j] + value[j + 1], m[j + 1] = value[j] - value[j + 1];
    columns_from<Matrix, 0>(m, x);
}

// Along rows, and if Square along columns too: (row, column) to (row's point, column's point). Number i of the plane is
// read(i), and what is at point j goes to write(j, value): through memory of their own, most of the time would be
// copying.
template <class Matrix, bool Square, class Read, class Write>
inline void plane_at_points(Read read, Write write) {
    constexpr int n = Matrix::size, N = Matrix::points;
    Vec lines[(Square ? n : 1) * N];
    FEELSTREAM_UNROLL(16)
    for (int y = 0; y < (Square ? n : 1); ++y) {
        Vec line[n], at[N];
        FEELSTREAM_UNROLL(16)
        for (int i = 0; i < n; ++i) line[i] = read(y * n + i);
        at_points<Matrix>(line, at);
        for (int j = 0; j < N; ++j) lines[y * N + j] = at[j];
    }
    FEELSTREAM_UNROLL(16)
    for (int j = 0; j < N; ++j) {
        if constexpr (Square) {
            Vec line[n], at[N];
            for (int y = 0; y < n; ++y) line[y] = lines[y * N + j];
            at_points<Matrix>(line, at);
            FEELSTREAM_UNROLL(16)
            for (int k = 0; k < N; ++k) write(k * N + j, at[k]);
        } else {
            write(j, lines[j]);
        }
    }
}

// Backwards in two steps: a column of points to a column of rows, for each point of a row, and these lines to the
// plane.
template <class Matrix, bool Square, int N, int n>
inline void column_from_points(const Vec (&value)[N], Vec (&column)[n]) {
    if constexpr (Square)
        from_points<Matrix>(value, column);
    else
        column[0] = value[0];
}

template <class Matrix, int Rows>
inline void plane_from_lines(const Vec* line, Vec* x) {
    constexpr int n = Matrix::size, N = Matrix::points;
    FEELSTREAM_UNROLL(16)
    for (int y = 0; y < Rows; ++y) {
        Vec at[N], out[n];
        for (int j = 0; j < N; ++j) at[j] = line[y * N + j];
        from_points<Matrix>(at, out);
        for (int i = 0; i < n; ++i) x[y * n + i] = out[i];
    }
}

// F(M×M, K×K) if Square, else F(1×M, 1×K).
template <int M, int K, bool Square>
struct Form {
    static constexpr int columns = M, rows = Square ? M : 1, taps = Square ? K * K : K;
    static constexpr int in_columns = M + K - 1, in_rows = Square ? in_columns : 1;
    static constexpr int points = in_rows * in_columns;
    template <class Read, class Write>
    static void inputs_to_points(Read read, Write write) {
        plane_at_points<InputMatrix<M, K>, Square>(read, write);
    }
    static void inputs_from_column(const Vec (&value)[in_rows], Vec (&column)[in_rows]) {
        column_from_points<InputMatrix<M, K>, Square>(value, column);
    }
    static void inputs_from_lines(const Vec (&line)[points], Vec (&x)[points]) {
        plane_from_lines<InputMatrix<M, K>, in_rows>(line, x);
    }
    static void outputs_from_column(const Vec (&value)[in_rows], Vec (&column)[rows]) {
        column_from_points<OutputMatrix<M, K>, Square>(value, column);
    }
    // Of some of a tile's rows.
    template <int Rows>
    static void outputs_from_lines(const Vec* line, Vec (&y)[Rows * columns]) {
        plane_from_lines<OutputMatrix<M, K>, Rows>(line, y);
    }
    template <class Read, class Write>
    static void outputs_to_points(Read read, Write write) {
        plane_at_points<OutputMatrix<M, K>, Square>(read, write);
    }
    template <class Read, class Write>
    static void weights_to_points(Read read, Write write) {
        plane_at_points<WeightMatrix<M, K>, Square>(read, write);
    }
    static void weights_from_points(const Vec (&value)[points], Vec (&w)[taps]) {
        constexpr int down = Square ? K : 1;
        Vec lines[down * in_columns];
        FEELSTREAM_UNROLL(16)
        for (int j = 0; j < in_columns; ++j) {
            Vec at[in_rows], column[down];
            for (int k = 0; k < in_rows; ++k) at[k] = value[k * in_columns + j];
            column_from_points<WeightMatrix<M, K>, Square>(at, column);
            for (int y = 0; y < down; ++y) lines[y * in_columns + j] = column[y];
        }
        plane_from_lines<WeightMatrix<M, K>, down>(lines, w);
    }
};

}  // namespace
}  // namespace feelstream
