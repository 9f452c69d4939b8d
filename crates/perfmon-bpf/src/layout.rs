use crate::Btf;

/// How a struct is laid out that both sides use: what the object's type information must say of the struct of this
/// name, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The struct's name.
    pub name: &'static str,
    /// Its size.
    pub bytes: usize,
    /// Its members' names with their offsets in bytes.
    pub members: &'static [(&'static str, usize)],
}

impl Layout {
    /// What differs in `btf`.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, btf: &Btf) -> Result<(), String> {
        let Some(bytes) = btf.struct_bytes(self.name) else { return Ok(()) };
        let Self { name, .. } = self;
        if bytes as usize != self.bytes {
            return Err(format!("struct {name} has {bytes} bytes in it, and {} here", self.bytes));
        }
        for &(member, offset) in self.members {
            let theirs = btf.offset(name, &[member]).map(|offset| offset as usize);
            if theirs != Some(offset) {
                let theirs = theirs.map_or_else(|| "nowhere".into(), |theirs| theirs.to_string());
                return Err(format!("{name}.{member} is at {theirs} in it, and at {offset} here"));
            }
        }
        Ok(())
    }
}
