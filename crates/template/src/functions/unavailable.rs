//! Hints for functions of Nomad's templates that are not available.

/// The reason and the fix, for a function that Nomad knows and this crate does not.
pub(super) fn hint(name: &str) -> Option<&'static str> {
    let sprig = name.strip_prefix("sprig_").unwrap_or_default();
    Some(match name {
        "plugin" => {
            "it starts a program on the node; run the program in a prestart task that writes a file, and read it with file"
        }
        "writeToFile" => {
            "a template writes its destination only; use one template block for each file"
        }
        "spew_printf" | "spew_sdump" | "spew_sprintf" => {
            "print values with printf \"%#v\" or toJSON"
        }
        "sha1Hex" => "use sprig_sha1sum",
        _ => match sprig {
            "" => return None,
            "set" | "unset" => {
                "values do not change; use sprig_merge or sprig_omit, or keep values with scratch.MapSet"
            }
            "date" | "dateInZone" | "date_in_zone" | "dateModify" | "date_modify"
            | "mustDateModify" | "must_date_modify" | "htmlDate" | "htmlDateInZone" | "now"
            | "ago" | "toDate" | "mustToDate" | "unixEpoch" | "duration" | "durationRound" => {
                "use timestamp for the time"
            }
            "env" | "expandenv" => "use env",
            "randAlphaNum" | "randAlpha" | "randAscii" | "randNumeric" | "randBytes"
            | "randInt" | "uuidv4" | "shuffle" => {
                "a template gives the same file for the same data; NOMAD_ALLOC_ID is unique for each allocation"
            }
            "bcrypt"
            | "htpasswd"
            | "genPrivateKey"
            | "derivePassword"
            | "buildCustomCert"
            | "genCA"
            | "genCAWithKey"
            | "genSelfSignedCert"
            | "genSelfSignedCertWithKey"
            | "genSignedCert"
            | "genSignedCertWithKey"
            | "encryptAES"
            | "decryptAES" => "create secrets outside the template",
            "getHostByName" => "a template makes no DNS queries; resolve the name in the task",
            "urlParse" | "urlJoin" => "take the address apart with split or sprig_regexFind",
            "abbrevboth" => "use sprig_abbrev",
            _ => return None,
        },
    })
}
