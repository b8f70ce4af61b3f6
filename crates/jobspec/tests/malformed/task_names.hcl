job "web" {
  group "server" {
    task "alloc" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }

    task "a/b" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }

    task ".." {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }

    task "x" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }

    task "x" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }

  }
}
