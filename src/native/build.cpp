#include "build.hpp"

#include <algorithm>
#include <stdexcept>

namespace feelstream {
namespace {

std::size_t whole_lines(std::size_t floats) { return (floats + lanes - 1) / lanes * lanes; }

Stage stage(Kind kind, int channels, int rows, int columns, int out_channels, int out_rows, int out_columns) {
    Stage s{};
    s.kind = kind;
    s.channels = channels, s.rows = rows, s.columns = columns;
    s.out_channels = out_channels, s.out_rows = out_rows, s.out_columns = out_columns;
    s.kernel_rows = s.kernel_columns = s.pool_rows = s.pool_columns = 1;
    return s;
}

void add_pool(Stage& s, int rows, int columns) {
    s.pool = true;
    s.pool_rows = rows, s.pool_columns = columns;
    s.out_rows /= rows, s.out_columns /= columns;
}

bool fits(const std::string& word, int size, int a, int b) {
    if (word == "conv") return size > 0 && a > 0 && b > 0;
    if (word == "pool") return (a == 1 || a == 2) && (b == 1 || b == 2) && a + b > 2;
    if (word == "pad") return a >= 0 && b >= 0;
    return word == "relu" || (word == "dense" && size > 0);
}

}  // namespace

std::vector<Stage> fuse(int channels, int rows, int columns, const std::vector<Layer>& layers) {
    std::vector<Stage> stages;
    bool weights = false;
    for (const auto& [word, size, a, b] : layers) {
        if (!fits(word, size, a, b)) throw std::invalid_argument("layer '" + word + "' is unknown or has a wrong size");
        Stage* last = stages.empty() || stages.back().kind == Kind::pad ? nullptr : &stages.back();
        if (word == "relu" && last) {
            last->relu = true;
        } else if (word == "pool" && last && last->kind == Kind::convolution && !last->pool) {
            // Also after a ReLU: the two commute, in value and in gradient.
            add_pool(*last, a, b);
        } else {
            if (word == "conv") {
                stages.push_back(stage(Kind::convolution, channels, rows, columns, size, rows - a + 1, columns - b + 1));
                stages.back().kernel_rows = a, stages.back().kernel_columns = b;
            } else if (word == "dense") {
                stages.push_back(stage(Kind::dense, channels, rows, columns, size, 1, 1));
            } else if (word == "pad") {
                stages.push_back(stage(Kind::pad, channels, rows, columns, channels, rows + a, columns + b));
            } else if (word == "pool") {
                stages.push_back(stage(Kind::pool, channels, rows, columns, channels, rows, columns));
                add_pool(stages.back(), a, b);
            } else {
                stages.push_back(stage(Kind::relu, channels, rows, columns, channels, rows, columns));
                stages.back().relu = true;
            }
            stages.back().has_earlier_weights = weights;
            weights = weights || word == "conv" || word == "dense";
        }
        const Stage& s = stages.back();
        channels = s.out_channels, rows = s.out_rows, columns = s.out_columns;
        if (channels < 1 || rows < 1 || columns < 1) throw std::invalid_argument("a layer leaves nothing");
    }
    if (!weights) throw std::invalid_argument("a model needs a layer with weights");
    return stages;
}

Network lay_out(std::vector<Stage>& stages, std::vector<std::size_t>& guards) {
    guards.clear();
    Network net{};
    const Stage &first = stages.front(), &last = stages.back();
    net.stages = stages.data(), net.count = int(stages.size());
    net.pixels = int(first.inputs()), net.classes = int(last.outputs());
    std::size_t used = 0, largest = 0, expanded = 0, transposed = 0, delta_points = 0, sums = 0;
    const auto take = [&](std::size_t floats) {
        const std::size_t at = used;
        used += whole_lines(floats);
#ifdef __SANITIZE_ADDRESS__
        guards.push_back(used);
        used += lanes;
#endif
        return at;
    };
    net.input = take(first.inputs() * lanes);
    for (Stage& s : stages) {
        s.output = take(s.outputs() * lanes);
        if (s.pool) s.route = take(s.outputs() * lanes);
        largest = std::max({largest, s.inputs(), s.outputs()});
        std::int64_t weights = 0;
        if (s.kind == Kind::convolution) {
            weights = std::int64_t(s.out_channels) * s.channels * s.kernel_area();
            constexpr int points = winograd_points * winograd_points;
            // What is transformed is larger, so there is room for the direct way too, which training takes forward.
            const std::size_t along_rows = weights / s.kernel_columns * winograd_points;
            const std::size_t row_points = std::size_t(s.rows) * s.row_tiles() * winograd_points;
            if (s.winograd_shared()) {
                s.forward_weights = take(weights / s.kernel_area() * points);
                s.backward_weights = take(along_rows);
                const std::size_t square = std::size_t(s.square_tiles()) * points;
                s.points = take(s.channels * std::max(square, row_points) * lanes);
                delta_points = std::max(delta_points, std::size_t(s.out_channels) * s.conv_rows() * s.row_tiles() *
                                                          winograd_points);
            } else {
                s.forward_weights = take(s.winograd() ? along_rows : std::size_t(weights));
                s.backward_weights = take(weights);
                if (s.winograd()) s.points = take(s.channels * row_points * lanes);
                sums = std::max(sums, s.gradient_sums());
                if (s.pool) expanded = std::max(expanded, s.conv_outputs());
            }
        } else if (s.kind == Kind::dense) {
            weights = std::int64_t(s.out_channels) * s.inputs();
            transposed = std::max(transposed, s.inputs());
        } else {
            continue;
        }
        s.weight = net.parameters;
        s.bias = s.weight + weights;
        net.parameters = s.bias + s.out_channels;
    }
    net.delta[0] = take(largest * lanes), net.delta[1] = take(largest * lanes);
    net.expanded = take(expanded * lanes);
    net.transposed = take(transposed * lanes);
    net.delta_points = take(delta_points * lanes);
    net.sums = take(sums * lanes);
    net.workspace = used;
    return net;
}

}  // namespace feelstream
