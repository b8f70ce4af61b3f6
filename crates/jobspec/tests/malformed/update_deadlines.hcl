job "web" {
  update {
    min_healthy_time  = "10m"
    healthy_deadline  = "5m"
    progress_deadline = "4m"
    auto_promote      = true
  }
  group "server" {
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
