job "web" {
  region = "${var.region"
}
