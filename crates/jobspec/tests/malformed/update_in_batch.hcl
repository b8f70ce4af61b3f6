job "web" {
  type = "batch"
  group "server" {
    update {
      max_parallel = 2
    }

    migrate {
    }
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
