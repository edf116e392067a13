#include "build.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "network.hpp"

namespace feelstream {
namespace {

std::size_t whole_lines(std::size_t floats) { return (floats + lanes - 1) / lanes * lanes; }

Stage stage(Kind kind, int channels, int rows, int columns, int out_channels, int out_rows, int out_columns) {
    Stage s{};
    s.kind = kind;
    s.channels = channels, s.rows = rows, s.columns = columns;
    s.out_channels = out_channels, s.out_rows = out_rows, s.out_columns = out_columns;
    s.kernel_rows = s.kernel_columns = s.pool_rows = s.pool_columns = 1;
    s.plane_rows = out_rows, s.plane_columns = out_columns;
    return s;
}

void add_pool(Stage& s, int rows, int columns) {
    s.pool = true;
    s.pool_rows = rows, s.pool_columns = columns;
    s.plane_rows = s.out_rows /= rows, s.plane_columns = s.out_columns /= columns;
}

bool fits(const Layer& layer) {
    const auto [kind, size, rows, columns] = layer;
    switch (kind) {
        case Kind::convolution: return size > 0 && rows > 0 && columns > 0;
        case Kind::dense: return size > 0;
        case Kind::pool: return (rows == 1 || rows == 2) && (columns == 1 || columns == 2) && rows + columns > 2;
        case Kind::relu: return true;
        case Kind::pad: return rows >= 0 && columns >= 0;
    }
    return false;
}

// A stage of its own for a layer with this input.
Stage begin(const Layer& layer, int channels, int rows, int columns) {
    switch (layer.kind) {
        case Kind::convolution: {
            Stage s = stage(layer.kind, channels, rows, columns, layer.size, rows - layer.rows + 1,
                            columns - layer.columns + 1);
            s.kernel_rows = layer.rows, s.kernel_columns = layer.columns;
            return s;
        }
        case Kind::dense: return stage(layer.kind, channels, rows, columns, layer.size, 1, 1);
        case Kind::pad:
            return stage(layer.kind, channels, rows, columns, channels, rows + layer.rows, columns + layer.columns);
        case Kind::pool:
        case Kind::relu: break;
    }
    Stage s = stage(layer.kind, channels, rows, columns, channels, rows, columns);
    if (layer.kind == Kind::pool)
        add_pool(s, layer.rows, layer.columns);
    else
        s.relu = true;
    return s;
}

// Room that stages share, each the most that any of them needs: in lines of `lanes` numbers.
struct Shared {
    std::size_t largest = 0, expanded = 0, transposed = 0, delta_points = 0, sums = 0, filter_inputs = 0;

    static void enlarge(std::size_t& room, std::size_t lines) { room = std::max(room, lines); }

    // For a convolution by filter.hpp.
    void filter(const Stage& s) {
        for (const int outputs : {narrow, wide}) {
            const int points = s.filter_points(outputs), strip = strip_of(points, s.channels);
            enlarge(filter_inputs, strip * points * points_apart(s.channels) / lanes);
        }
        const int points = s.filter_points(wide), strip = strip_of(points, s.channels + s.out_channels);
        enlarge(delta_points, strip * points * points_apart(s.out_channels) / lanes);
        enlarge(transposed, std::size_t(strip) * s.padded_channels());
        enlarge(sums, points * s.weight_points_apart() / lanes);
    }
};

// Room for a convolution's weights in the order in which they are read, and for its input at points.
template <class Take>
void lay_out_convolution(Stage& s, Shared& shared, Take take) {
    const std::size_t weights = std::size_t(s.out_channels) * s.channels * s.kernel_area();
    if (s.filter() != Filter::none) shared.filter(s);
    const std::size_t at_points = s.filter() == Filter::none ? 0 : s.filter_points(wide) * s.weight_points_apart();
    constexpr int points = winograd_points * winograd_points;
    // What is transformed is larger, so there is room for the direct way too, which training may take forward.
    const std::size_t along_rows = weights / s.kernel_columns * winograd_points;
    const std::size_t row_points = std::size_t(s.rows) * s.row_tiles() * winograd_points;
    if (s.filters_back()) {
        s.forward_weights = take(at_points);
        s.backward_weights = take(at_points);
    } else if (s.winograd_shared()) {
        s.forward_weights = take(weights / s.kernel_area() * points);
        s.backward_weights = take(along_rows);
        const std::size_t square = std::size_t(s.square_tiles()) * points;
        s.points = take(s.channels * std::max(square, row_points) * lanes);
        Shared::enlarge(shared.delta_points,
                        std::size_t(s.out_channels) * s.conv_rows() * s.row_tiles() * winograd_points);
    } else {
        s.forward_weights = take(std::max(at_points, s.winograd() ? along_rows : weights));
        s.backward_weights = take(weights);
        if (s.winograd()) s.points = take(s.channels * row_points * lanes);
        Shared::enlarge(shared.sums, s.gradient_sums());
        if (s.pool) Shared::enlarge(shared.expanded, s.conv_outputs());
    }
}

// Zeros around an input that is written by a stage with pooling, or by `gather`, need no copy: what comes before writes
// into the larger plane. (Without pooling, the way back looks at the output of a ReLU again.)
void place_outputs(std::vector<Stage>& stages, Network& net) {
    for (std::size_t i = 0; i < stages.size(); ++i) {
        Stage& pad = stages[i];
        const bool before = i == 0 || (stages[i - 1].kind == Kind::convolution && stages[i - 1].pool);
        if (pad.kind != Kind::pad || !before || int(i) + 1 == net.tail) continue;
        pad.placed = true;
        const std::size_t begin =
            pad.output + pad.at(0, (pad.out_rows - pad.rows) / 2, (pad.out_columns - pad.columns) / 2);
        if (i > 0) {
            stages[i - 1].output = begin;
            stages[i - 1].plane_rows = pad.out_rows, stages[i - 1].plane_columns = pad.out_columns;
        } else {
            net.input = begin;
            net.row_gap = pad.out_columns - pad.columns;
            net.plane_gap = (pad.out_rows - pad.rows) * pad.out_columns;
        }
    }
}

}  // namespace

const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::convolution: return "convolution";
        case Kind::dense: return "dense";
        case Kind::pool: return "pool";
        case Kind::relu: return "relu";
        case Kind::pad: return "pad";
    }
    return "unknown";
}

std::vector<Stage> fuse(int channels, int rows, int columns, const std::vector<Layer>& layers) {
    std::vector<Stage> stages;
    bool weights = false;
    for (const Layer& layer : layers) {
        const Kind kind = layer.kind;
        if (!fits(layer)) throw std::invalid_argument(std::string("a layer has a wrong size: ") + name_of(kind));
        Stage* last = stages.empty() || stages.back().kind == Kind::pad ? nullptr : &stages.back();
        if (kind == Kind::relu && last) {
            last->relu = true;
        } else if (kind == Kind::pool && last && last->kind == Kind::convolution && !last->pool) {
            // Also after a ReLU: the two commute, in value and in gradient.
            add_pool(*last, layer.rows, layer.columns);
        } else {
            stages.push_back(begin(layer, channels, rows, columns));
            stages.back().has_earlier_weights = weights;
            weights = weights || kind == Kind::convolution || kind == Kind::dense;
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
    net.image_rows = first.rows, net.image_columns = first.columns;
    for (net.tail = net.count; net.tail > 0 && stages[net.tail - 1].kind == Kind::dense;) --net.tail;
    Shared shared;
    std::size_t used = 0;
    const auto take = [&](std::size_t floats) {
        const std::size_t at = used;
        used += whole_lines(floats);
#ifdef __SANITIZE_ADDRESS__
        guards.push_back(used);
        used += lanes;
#endif
        return at;
    };
    net.input = take(first.inputs() * lanes * (net.tail == 0 ? max_together : 1));
    for (Stage& s : stages) {
        const bool together = &s - stages.data() >= net.tail - 1;  // what dense layers read or write
        s.output = take(s.outputs() * lanes * (together ? max_together : 1));
        if (s.pool) s.route = take(s.outputs() * lanes);
        Shared::enlarge(shared.largest, std::max(s.inputs(), s.outputs()));
        std::int64_t weights = 0;
        if (s.kind == Kind::convolution) {
            weights = std::int64_t(s.out_channels) * s.channels * s.kernel_area();
            lay_out_convolution(s, shared, take);
        } else if (s.kind == Kind::dense) {
            weights = std::int64_t(s.out_channels) * s.inputs();
            Shared::enlarge(shared.transposed, s.padded_inputs());
        } else {
            continue;
        }
        s.weight = net.parameters;
        s.bias = s.weight + weights;
        net.parameters = s.bias + s.out_channels;
    }
    net.delta[0] = take(shared.largest * lanes), net.delta[1] = take(shared.largest * lanes);
    net.expanded = take(shared.expanded * lanes);
    net.transposed = take(shared.transposed * lanes);
    net.delta_points = take(shared.delta_points * lanes);
    net.sums = take(shared.sums * lanes);
    net.filter_inputs = take(shared.filter_inputs * lanes);
    place_outputs(stages, net);
    net.workspace = used;
    return net;
}

}  // namespace feelstream
