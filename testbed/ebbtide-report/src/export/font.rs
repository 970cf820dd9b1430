//! The fonts of exported figures: Arimo (SIL Open Font License, `font/OFL.txt`), which has the
//! widths of Helvetica, with the characters of WinAnsiEncoding. `scripts/figure-font.py` made the
//! files and the tables.

/// A font that is embedded.
pub(super) struct Font {
    /// Its name in the file. The tag says that it is a part of a font (PDF 1.7, section 9.6.4).
    pub(super) name: &'static str,
    /// Whether it is the bold one.
    pub(super) is_bold: bool,
    /// Its TrueType file.
    pub(super) file: &'static [u8],
    /// The box around all characters, thousandths of the size.
    pub(super) bounds: [i16; 4],
    /// The widths of the characters from 32 on, thousandths of the size.
    widths: [u16; 224],
}

/// The regular and the bold font.
pub(super) static FONTS: [Font; 2] = [
    Font {
        name: "EBBTID+Arimo",
        is_bold: false,
        file: include_bytes!("font/regular.ttf"),
        bounds: [-203, -223, 1000, 878],
        widths: [
            278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556,
            556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667,
            667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722,
            667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500,
            556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278,
            556, 500, 722, 500, 500, 500, 334, 260, 334, 584, 0, 556, 0, 222, 556, 333, 1000, 556,
            556, 333, 1000, 667, 333, 1000, 0, 611, 0, 0, 222, 222, 333, 333, 350, 556, 1000, 333,
            1000, 500, 333, 944, 0, 500, 667, 278, 333, 556, 556, 556, 556, 260, 556, 333, 737,
            370, 556, 584, 333, 737, 552, 400, 549, 333, 333, 333, 576, 537, 333, 333, 333, 365,
            556, 834, 834, 834, 611, 667, 667, 667, 667, 667, 667, 1000, 722, 667, 667, 667, 667,
            278, 278, 278, 278, 722, 722, 778, 778, 778, 778, 778, 584, 778, 722, 722, 722, 722,
            667, 667, 611, 556, 556, 556, 556, 556, 556, 889, 500, 556, 556, 556, 556, 278, 278,
            278, 278, 556, 556, 556, 556, 556, 556, 556, 549, 611, 556, 556, 556, 556, 500, 556,
            500,
        ],
    },
    Font {
        name: "EBBTID+Arimo-Bold",
        is_bold: true,
        file: include_bytes!("font/bold.ttf"),
        bounds: [-184, -222, 1000, 896],
        widths: [
            278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556,
            556, 556, 556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722,
            722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778, 667, 778, 722,
            667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556,
            611, 556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611, 611, 611, 389, 556, 333,
            611, 556, 778, 556, 556, 500, 389, 280, 389, 584, 0, 556, 0, 278, 556, 500, 1000, 556,
            556, 333, 1000, 667, 333, 1000, 0, 611, 0, 0, 278, 278, 500, 500, 350, 556, 1000, 333,
            1000, 556, 333, 944, 0, 500, 667, 278, 333, 556, 556, 556, 556, 280, 556, 333, 737,
            370, 556, 584, 333, 737, 552, 400, 549, 333, 333, 333, 576, 556, 333, 333, 333, 365,
            556, 834, 834, 834, 611, 722, 722, 722, 722, 722, 722, 1000, 722, 667, 667, 667, 667,
            278, 278, 278, 278, 722, 722, 778, 778, 778, 778, 778, 584, 778, 722, 722, 722, 722,
            667, 667, 611, 556, 556, 556, 556, 556, 556, 889, 556, 556, 556, 556, 556, 278, 278,
            278, 278, 611, 611, 611, 611, 611, 611, 611, 549, 611, 611, 611, 611, 611, 556, 611,
            556,
        ],
    },
];

impl Font {
    /// How wide a text in WinAnsiEncoding is.
    pub(super) fn width(&self, text: &[u8], size: f64) -> f64 {
        let of = |byte: &u8| self.widths.get(usize::from(byte.wrapping_sub(32)));
        let sum: u32 = text.iter().filter_map(of).map(|width| u32::from(*width)).sum();
        f64::from(sum) / 1000.0 * size
    }

    /// The font as an object of a PDF whose descriptor is the object of this number.
    pub(super) fn object(&self, descriptor: usize) -> String {
        let widths: Vec<String> = self.widths.iter().map(u16::to_string).collect();
        format!(
            "<< /Type /Font /Subtype /TrueType /BaseFont /{} /Encoding /WinAnsiEncoding /FirstChar 32 /LastChar 255 \
             /Widths [{}] /FontDescriptor {descriptor} 0 R >>",
            self.name,
            widths.join(" ")
        )
    }

    /// Its descriptor, whose file is the object of this number.
    pub(super) fn descriptor(&self, file: usize) -> String {
        let bounds = self.bounds.map(|value| value.to_string()).join(" ");
        // A font without symbols of its own (bit 6). The stems of bold letters are about twice as wide.
        let stem = if self.is_bold { 140 } else { 80 };
        format!(
            "<< /Type /FontDescriptor /FontName /{} /Flags 32 /FontBBox [{bounds}] /ItalicAngle 0 /Ascent 905 \
             /Descent -212 /CapHeight 688 /StemV {stem} /FontFile2 {file} 0 R >>",
            self.name
        )
    }
}
