// Streams of requests: lines, followed by bytes.
#include <sys/mman.h>

#include <array>

#include "program/request_line.h"
#include "program/stream_input.h"
#include "tests/fuzz/json.h"
#include "tests/fuzz/target.h"

namespace opwright::fuzz {
namespace {

constexpr std::array<std::string_view, 16> stream_words{"inputs",
                                                        "batch",
                                                        "bytes",
                                                        "output",
                                                        "x",
                                                        "",
                                                        "x.npy",
                                                        "both.npz",
                                                        "\\u0000",
                                                        "{\"inputs\": {\"x\": \"x.npy\"}}",
                                                        "{\"inputs\": {\"x\": {\"bytes\": 3}}}\nabc",
                                                        "{\"batch\": [{\"inputs\": {}}]}",
                                                        "{\"bytes\": 1}",
                                                        "\n",
                                                        "{}",
                                                        "[]"};

std::string read_stream(std::string_view input) {
    const host::Descriptor file(memfd_create("stream", MFD_CLOEXEC));
    host::write_all(file.number(), input);
    lseek(file.number(), 0, SEEK_SET);
    return outcome_of({Code::input_unreadable}, [&file] {
        const host::StopSignal stop;
        host::StreamInput stream(file.number(), stop);
        for (size_t number = 0;; ++number) {
            const std::optional<std::string> line = stream.line();
            if (!line) return;
            std::vector<host::Request> rows = host::parse_line_of_stream(*line, number);
            require(!rows.empty(), "a request without rows");
            for (host::Request& row : rows) {
                read_bytes(row, stream);
                if (row.error) require_plain(*row.error, {Code::input_unreadable});
                for (const host::InputFile& one : row.inputs)
                    require(row.error || (one.size ? one.path.empty() && one.bytes.size() == *one.size
                                                   : !one.path.empty() && one.path.find('\0') == std::string::npos),
                            "an input that is neither a file nor its bytes");
            }
        }
    });
}

std::string changed_stream(std::string input, Random& random) {
    return changed_json_lines(std::move(input), stream_words, random);
}

}  // namespace

const Target stream{"stream", read_stream, changed_stream};

}  // namespace opwright::fuzz
