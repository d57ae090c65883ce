#include "tests/fuzz/image.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace opwright::fuzz {
namespace {

constexpr std::string_view png_signature = "\x89PNG\r\n\x1a\n";
constexpr std::array<std::string_view, 14> chunk_names{"IHDR", "PLTE", "IDAT", "IEND", "tRNS", "gAMA", "cHRM",
                                                       "iCCP", "sRGB", "sBIT", "bKGD", "zTXt", "eXIf", "acTL"};

struct Piece {
    std::string kind;  // a name of four letters, or a marker of two bytes
    std::string data;
    std::string after;  // of a JPEG: what follows up to the next marker
};

std::string big_endian(uint64_t value, int bytes) {
    std::string text;
    for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> 8 * i & 255);
    return text;
}

uint64_t number_at(std::string_view bytes, size_t place, size_t size) {
    uint64_t value = 0;
    for (const char byte : bytes.substr(place, size)) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
}

std::vector<Piece> chunks_of(std::string_view png) {
    std::vector<Piece> chunks;
    for (size_t place = png_signature.size(); place + 12 <= png.size();) {
        const size_t size = std::min<size_t>(number_at(png, place, 4), png.size() - place - 12);
        chunks.push_back({std::string(png.substr(place + 4, 4)), std::string(png.substr(place + 8, size)), ""});
        place += 12 + size;
    }
    return chunks;
}

std::string png_of(const std::vector<Piece>& chunks, Random& random) {
    std::string png(png_signature);
    for (const auto& [kind, data, after] : chunks) {
        const std::string body = kind + data;
        auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
        if (random.one_in(200)) crc ^= 1;
        png += big_endian(random.one_in(200) ? random.bits() : data.size(), 4) + body + big_endian(crc, 4);
    }
    return png;
}

bool stands_alone(unsigned char marker) {
    return marker == 0x01 || (0xd0 <= marker && marker <= 0xd9);
}

std::vector<Piece> segments_of(std::string_view jpeg) {
    std::vector<Piece> segments;
    for (size_t place = 0; place + 2 <= jpeg.size();) {
        Piece& piece = segments.emplace_back(Piece{std::string(jpeg.substr(place, 2)), "", ""});
        place += 2;
        if (!stands_alone(static_cast<unsigned char>(piece.kind[1])) && place + 2 <= jpeg.size()) {
            const size_t size = std::clamp<size_t>(number_at(jpeg, place, 2), 2, jpeg.size() - place);
            piece.data = jpeg.substr(place + 2, size - 2);
            place += size;
        }
        size_t next = place;
        while (next + 1 < jpeg.size() && (jpeg[next] != '\xff' || jpeg[next + 1] == '\0')) ++next;
        if (next + 1 >= jpeg.size()) next = jpeg.size();
        piece.after = jpeg.substr(place, next - place);
        place = next;
    }
    return segments;
}

std::string jpeg_of(const std::vector<Piece>& segments, Random& random) {
    std::string jpeg;
    for (const auto& [kind, data, after] : segments) {
        jpeg += kind;
        if (!stands_alone(static_cast<unsigned char>(kind[1])))
            jpeg += big_endian(random.one_in(200) ? random.bits() : data.size() + 2, 2) + data;
        jpeg += after;
    }
    return jpeg;
}

// Changes the pixels of a PNG before compression.
void change_pixels(std::string& data, Random& random) {
    std::string pixels(1 << 16, '\0');
    uLongf size = pixels.size();
    if (uncompress(reinterpret_cast<Bytef*>(pixels.data()), &size, reinterpret_cast<const Bytef*>(data.data()),
                   data.size()) != Z_OK)
        return;
    pixels = changed_bytes(pixels.substr(0, size), random);
    uLongf packed = compressBound(pixels.size());
    data.resize(packed);
    compress(reinterpret_cast<Bytef*>(data.data()), &packed, reinterpret_cast<const Bytef*>(pixels.data()),
             pixels.size());
    data.resize(packed);
}

// Changes the width, height, depth, color type or interlacing.
void change_header(std::string& data, Random& random) {
    constexpr std::array<uint64_t, 9> sizes{0, 1, 2, 7, 8, 9, 300, 1000000, 0x7fffffff};
    data.resize(13);
    if (random.one_in(3))
        data.replace(4 * random.below(2), 4, big_endian(random.one_of(sizes), 4));
    else
        data[8 + random.below(5)] = static_cast<char>(random.one_in(4) ? random.byte() : random.below(17));
}

void change_piece(Piece& piece, Random& random) {
    if (piece.kind == "IHDR" && !random.one_in(4))
        change_header(piece.data, random);
    else if (piece.kind == "IDAT" && random.one_in(2))
        change_pixels(piece.data, random);
    else if (!piece.after.empty() && random.one_in(2))
        piece.after = changed_bytes(piece.after, random);
    else if (random.one_in(8))
        piece.kind =
            piece.kind.size() == 4 ? std::string(random.one_of(chunk_names)) : std::string("\xff") + random.byte();
    else if (!piece.data.empty() && random.one_in(2))
        piece.data[random.below(std::min<size_t>(piece.data.size(), 24))] = random.byte();
    else
        piece.data = changed_bytes(piece.data, random);
    if (piece.kind.size() == 2) piece.data.resize(std::min<size_t>(piece.data.size(), 65533));
}

}  // namespace

std::string changed_image(std::string image, Random& random) {
    const bool png = image.starts_with(png_signature);
    std::vector<Piece> pieces = png ? chunks_of(image) : segments_of(image);
    if (pieces.empty() || random.one_in(8)) return changed_bytes(std::move(image), random);
    const auto place = pieces.begin() + static_cast<std::ptrdiff_t>(random.below(pieces.size()));
    switch (random.below(8)) {
        case 0:
            pieces.erase(place);
            break;
        case 1: {
            const Piece copy = random.one_of(pieces);
            pieces.insert(place, copy);
            break;
        }
        case 2:
            std::swap(*place, random.one_of(pieces));
            break;
        case 3:
            if (png) {
                pieces.insert(place, Piece{std::string(random.one_of(chunk_names)), changed_bytes("", random), ""});
                break;
            }
            [[fallthrough]];
        default:
            change_piece(*place, random);
    }
    return png ? png_of(pieces, random) : jpeg_of(pieces, random);
}

}  // namespace opwright::fuzz
