job "web" {
  group "server" {
    update {
      progress_deadline = "1d"
    }
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
