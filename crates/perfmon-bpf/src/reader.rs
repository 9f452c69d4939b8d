/// Little-endian numbers at an offset; `None` outside of the bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    pub(crate) fn u16(self, at: usize) -> Option<usize> {
        self.array(at).map(u16::from_le_bytes).map(usize::from)
    }

    pub(crate) fn u32(self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    /// A u32 that counts bytes or elements.
    pub(crate) fn count(self, at: usize) -> Option<usize> {
        self.u32(at).and_then(|count| usize::try_from(count).ok())
    }

    /// A u64 that counts bytes or elements.
    pub(crate) fn length(self, at: usize) -> Option<usize> {
        self.u64(at).and_then(|count| usize::try_from(count).ok())
    }

    pub(crate) fn part(self, at: usize, length: usize) -> Option<Bytes<'a>> {
        self.0.get(at..at.checked_add(length)?).map(Bytes)
    }

    /// The text at `at` up to its NUL byte.
    pub(crate) fn text(self, at: usize) -> Option<&'a str> {
        let rest = self.0.get(at..)?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(rest.get(..end)?).ok()
    }
}
