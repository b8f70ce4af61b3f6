job "web" {
  group "server" {
    constraint {
      attribute = attr.kernel.name
      operator  = "~="
      value     = "linux"
    }

    constraint {
      attribute = attr.kernel.version
      operator  = "version"
      value     = ">= five"
    }

    constraint {
      attribute = attr.kernel.name
      operator  = "regexp"
      value     = "lin(ux"
    }

    constraint {
      attribute = attr.kernel.name
    }
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
